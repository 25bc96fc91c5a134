"""The HTTP headers of a server's web pages."""

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)


class PageHeaders:
    """Adds the headers that protect a page: its own scripts only, in no frame, and no referrer.

    Refuses WebSockets, which every website may open, because pages have none.

    Args:
        app: The protected application. What it sets itself is kept.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, and add the headers to the response."""
        if scope["type"] == "websocket":
            await WebSocketClose()(scope, receive, send)  # before accept: 403
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("content-security-policy", POLICY)
                headers.setdefault("referrer-policy", "no-referrer")
                headers.setdefault("x-content-type-options", "nosniff")
                headers.setdefault("cache-control", "no-cache")
            await send(message)

        await self._app(scope, receive, send_with_headers)
