"""Requests of the console's page: who may make them."""

from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opentabs_py.console.access import HEADER, Access
from opentabs_py.server.http.json_requests import refuse

SIGNED_OUT = "This browser has no access, or no longer. Run `opentabs ui`."


class Admitted:
    """Forwards requests of browsers that were let in; those that change something, of our page.

    To a page of our extension, which has another origin, the browser shows the answers only if they
    allow it: https://fetch.spec.whatwg.org/#http-cors-protocol. No other origin is ever allowed.

    Args:
        app: The protected application.
        access: Who is let in.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or answer 401 or 403."""
        headers = Headers(scope=scope)
        origin = self._access.extension_origin(headers)
        if scope["method"] == "OPTIONS" and origin is not None:
            # The browser asks first, without the secret.
            await Response(None, HTTPStatus.NO_CONTENT, _preflight(origin))(scope, receive, send)
            return
        answer: ASGIApp = self._app
        reads = scope["method"] in ("GET", "HEAD")
        is_image = reads and scope["path"].endswith(".svg")  # an element that loads it sends no key
        is_in = self._access.shows(headers) if is_image else self._access.admits(headers)
        if not is_in:
            answer = refuse(SIGNED_OUT, HTTPStatus.UNAUTHORIZED)
        elif not reads:
            why = self._access.refusal(headers)
            answer = self._app if why is None else refuse(why, HTTPStatus.FORBIDDEN)

        async def send_to_extension(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_allow(str(origin)))
            await send(message)

        is_extension = origin is not None and is_in
        await answer(scope, receive, send_to_extension if is_extension else send)


def _allow(origin: str) -> dict[str, str]:
    return {"access-control-allow-origin": origin, "vary": "Origin"}


def _preflight(origin: str) -> dict[str, str]:
    return {
        **_allow(origin),
        "access-control-allow-methods": "GET, POST",
        "access-control-allow-headers": f"authorization, content-type, {HEADER}",
        # https://wicg.github.io/private-network-access/
        "access-control-allow-private-network": "true",
        "access-control-max-age": "600",
    }
