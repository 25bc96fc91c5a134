"""Admit requests from this machine's own pages and programs, and with the token."""

import hmac
import logging
import re
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from opentabs_py.core.hosts import LOCAL
from opentabs_py.server.http.peers import is_of_another_user, users_are_told

logger = logging.getLogger(__name__)

# A Host (RFC 9110, section 7.2) and an Origin (RFC 6454, section 7), with nothing around them.
_HOST: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:(?P<port>[0-9]{1,5}))?")
_ORIGIN: Final = re.compile(r"http://" + _HOST.pattern)


class LocalOnly:
    """Allows only requests addressed to this machine by its own names, and from its own pages.

    A name that foreign DNS points here is not among them, so a page of another site cannot
    make its visitor's browser call tools (DNS rebinding).

    Args:
        app: The protected application; WebSockets pass unchecked.
        host: The address of the server, besides the usual local names.
        extension: An extension whose own pages are let through as well, as its Origin and the path
            below which they may ask; the application checks who they are.
    """

    def __init__(
        self, app: ASGIApp, host: str = "127.0.0.1", extension: tuple[str, str] | None = None
    ) -> None:
        self._app = app
        self._hosts = {*LOCAL, host.lower()}
        self._extension = extension

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or answer 403."""
        answer = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if not self._is_local(_HOST, headers.get("host", "")):
                answer = _refuse(
                    "The Host header does not name this machine; use 127.0.0.1 or localhost."
                )
            elif not (
                all(self._is_local(_ORIGIN, each) for each in headers.getlist("origin"))
                or self._is_extension(headers, scope["path"])
            ):
                answer = _refuse("The Origin header does not name this machine.")
        await answer(scope, receive, send)

    def _is_extension(self, headers: Headers, path: str) -> bool:
        if self._extension is None:
            return False
        origin, below = self._extension
        return bool(origin) and headers.getlist("origin") == [origin] and path.startswith(below)

    def _is_local(self, grammar: re.Pattern[str], text: str) -> bool:
        found = grammar.fullmatch(text)
        return (
            found is not None
            and found["host"].lower() in self._hosts
            and int(found["port"] or 0) <= 65535
        )


def _refuse(why: str) -> ASGIApp:
    text = f"A request was refused: {why}"  # which tells the reasons apart: see `log_limits`
    logger.warning(text)
    return JSONResponse({"error": why}, status_code=403)


class OwnProgramsOnly:
    """Allows only requests of this user's programs, and from other machines.

    Other users could otherwise use the user's sign-ins. Only Linux tells whose a program is.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        users_are_told()  # which is remembered; nobody can connect yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or answer 403."""
        answer = self._app
        if is_of_another_user(scope):
            answer = _refuse(
                "The program that sent this request belongs to another user of this machine, or "
                "has disconnected. For other users' programs, start the server with a token "
                "(OPENTABS_TOKEN), and have them send it."
            )
        await answer(scope, receive, send)


class RequireToken:
    """Allows only requests with the bearer token (RFC 6750)."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request, or answer 401."""
        answer = self._app
        if scope["type"] == "http":
            # The scheme may be in any case (RFC 9110, section 11.1).
            scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
            is_given = hmac.compare_digest(given.strip(" ").encode(), self._wanted)
            if scheme.lower() != "bearer" or not is_given:
                answer = JSONResponse(
                    {"error": "Send the server's token: `Authorization: Bearer TOKEN`."},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
        await answer(scope, receive, send)
