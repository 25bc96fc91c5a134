"""The ids of requests over HTTP: each belongs to one request at a time."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp, Message

from opentabs_py.server.mcp.streamable_http import run_http_apps
from tests.fakes import Json
from tests.served import INITIALIZE, Served
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio
ANSWERS = [b'"result":', b'"error":']


class Poster:
    """A client that reads each part of a response before the server continues."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._session: list[tuple[bytes, bytes]] = []

    async def post(
        self, message: Json, on_answer: Callable[[], Awaitable[None]] | None = None
    ) -> int:
        """Send a request; return the status."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        sent: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        status = 0

        async def receive() -> Message:
            if not sent:
                await anyio.sleep_forever()
            return sent.pop()

        async def send(part: Message) -> None:
            nonlocal status
            if part["type"] == "http.response.start":
                status = part["status"]
                self._session = [each for each in part["headers"] if each[0] == b"mcp-session-id"]
            elif on_answer is not None and any(each in part["body"] for each in ANSWERS):
                await on_answer()

        headers = [
            (b"accept", b"application/json, text/event-stream"),
            (b"content-type", b"application/json"),
            *self._session,
        ]
        scope: dict[str, Any] = {
            "type": "http", "method": "POST", "path": "/mcp", "headers": headers,
            "query_string": b"",
        }  # fmt: skip
        with anyio.fail_after(PATIENT):
            await self._app(scope, receive, send)
        return status


@pytest.mark.parametrize("request_id", [1, -1, 'a "quoted" \\ id', ""])
@pytest.mark.parametrize("method", ["tools/list", "no/such/method"])
async def test_an_id_is_free_again_before_its_answer_is_sent(
    request_id: str | int, method: str
) -> None:
    message: Json = {"id": request_id, "method": method}
    again: list[int] = []
    async with run_http_apps({"/mcp": Served().server}, request_limit=10_000) as apps:
        client = Poster(apps["/mcp"])
        assert await client.post(INITIALIZE) == 200

        async def ask_again() -> None:
            again.append(await client.post(message))

        assert await client.post(message, on_answer=ask_again) == 200
    assert again == [200]
