"""The stream of changes that a page reads for as long as it lives."""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opentabs_py.server.call_stream import cancel_at_disconnect

# s; a page that hears nothing for 15 connects again: the server may be suspended, or a tunnel gone.
QUIET_AT_MOST: Final = 5.0

Write = Callable[[bytes], Awaitable[None]]


def event(update: Mapping[str, Any], *, boot: str, now: float) -> bytes:
    """Return a server-sent event.

    Args:
        update: What has changed.
        boot: The server's run, whose versions they are.
        now: The time, in seconds since the epoch.
    """
    text = json.dumps({"boot": boot, "now": now, **update}, separators=(",", ":"))
    return b"data: %b\n\n" % text.encode()


class StreamApp:
    """Answers with what changes until the page goes away. A class, because it streams itself.

    Args:
        follow: Writes events until there are no more; called with the run and the version that the
            page knows.
    """

    def __init__(self, follow: Callable[[Write, str, int], Awaitable[None]]) -> None:
        self._follow = follow

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        query = Request(scope).query_params
        boot, given = query.get("boot", ""), query.get("since", "")
        version = int(given) if given.isascii() and given.isdigit() and len(given) < 16 else 0

        async def write(body: bytes) -> None:
            await send({"type": "http.response.body", "body": body, "more_body": True})

        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
            return
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_at_disconnect, receive, tasks.cancel_scope)
            await self._follow(write, boot, version)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()
