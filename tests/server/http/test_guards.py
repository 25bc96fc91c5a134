"""Which requests pass the guards before the server."""

import json
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opentabs_py.server.http.guards import LocalOnly, RequireToken

pytestmark = pytest.mark.anyio

TOKEN = "t" * 16


async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer everything."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}"})


async def ask(
    guard: ASGIApp, *headers: tuple[str, str], kind: str = "http", path: str = "/"
) -> tuple[int, Any]:
    """Return the status and the JSON of the response to a request."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers]
    await guard({"type": kind, "headers": raw, "method": "GET", "path": path}, receive, send)
    start, body = sent
    return start["status"], json.loads(body["body"])


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"Host": "127.0.0.1"}, True),
        ({"Host": "localhost:1234"}, True),
        ({"Origin": "http://127.0.0.1:1234"}, True),
        ({"Host": "evil.example"}, False),
        ({"Host": "127.0.0.1.evil.example:80"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Host": "LOCALHOST"}, True),
        ({"Host": "[::1]:80"}, True),
        ({"Host": "[::1]"}, True),
        ({"Host": "localhost:1.evil.com"}, False),
        ({"Host": "localhost:65535"}, True),
        ({"Host": "localhost:65536"}, False),
        ({"Host": "localhost:"}, False),
        ({"Host": "me@localhost:80"}, False),
        ({"Host": "localhost:80@evil.example"}, False),
        ({"Host": "[::1]:80.evil.example"}, False),
        ({"Host": "[::1].evil.example:80"}, False),
        ({"Host": ""}, False),
        ({"Origin": "http://localhost"}, True),
        ({"Origin": "http://[::1]:1234"}, True),
        ({"Origin": "http://[::1]"}, True),
        ({"Origin": "http://localhost:1.evil.com"}, False),
        ({"Origin": "http://localhost:1@evil.com"}, False),
        ({"Origin": "http://localhost:1234/"}, False),
        ({"Origin": "http://localhost:1234 http://evil.example"}, False),
        ({"Origin": "https://localhost:1234"}, False),
        ({"Origin": "chrome-extension://x"}, False),
        ({"Origin": ""}, False),
    ],
)
async def test_only_requests_to_this_machine_and_from_its_pages_pass(
    given: dict[str, str], allowed: bool
) -> None:
    headers = {"Host": "127.0.0.1", **given}

    status, body = await ask(LocalOnly(app), *headers.items())

    assert (status, "error" in body) == ((200, False) if allowed else (403, True))


async def test_a_request_without_a_host_is_refused() -> None:
    assert (await ask(LocalOnly(app)))[0] == 403


async def test_of_two_origins_both_must_be_of_this_machine() -> None:
    both = [("Origin", "http://localhost:1"), ("Origin", "https://evil.example")]
    assert (await ask(LocalOnly(app), ("Host", "localhost"), *both))[0] == 403


async def test_the_address_of_the_server_is_a_name_of_this_machine() -> None:
    guard = LocalOnly(app, host="Tabs.Internal")
    assert (await ask(guard, ("Host", "tabs.internal:80")))[0] == 200
    assert (await ask(guard, ("Host", "internal:80")))[0] == 403


EXTENSION = "chrome-extension://x"


@pytest.mark.parametrize(
    ("extension", "origin", "path", "allowed"),
    [
        (EXTENSION, EXTENSION, "/panel/state", True),
        (EXTENSION, EXTENSION, "/mcp", False),
        (EXTENSION, "chrome-extension://y", "/panel/state", False),
        ("", "", "/panel/state", False),  # it has no known origin
    ],
)
async def test_an_extensions_pages_reach_only_what_is_below_their_path(
    extension: str, origin: str, path: str, allowed: bool
) -> None:
    guard = LocalOnly(app, extension=(extension, "/panel/"))
    status, _ = await ask(guard, ("Host", "127.0.0.1"), ("Origin", origin), path=path)
    assert status == (200 if allowed else 403)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer "])
async def test_the_token_passes_whatever_the_case_of_its_scheme(scheme: str) -> None:
    given = ("authorization", f"{scheme} {TOKEN}")
    assert (await ask(RequireToken(app, TOKEN), given))[0] == 200


@pytest.mark.parametrize(
    "given", [None, "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"]
)
async def test_without_the_token_nothing_passes(given: str | None) -> None:
    headers = [] if given is None else [("authorization", given)]

    status, body = await ask(RequireToken(app, TOKEN), *headers)

    assert status == 401
    assert "Authorization: Bearer TOKEN" in body["error"]


@pytest.mark.parametrize("guard", [LocalOnly(app), RequireToken(app, TOKEN)])
async def test_sockets_pass_unchecked_for_they_have_a_secret_of_their_own(guard: ASGIApp) -> None:
    assert (await ask(guard, kind="websocket"))[0] == 200
