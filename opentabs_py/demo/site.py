"""The demo site: a small chat with channels, paged history and a signed session cookie.

It behaves as the sites do that real plugins are written for: its API answers only
to its own page's session, gives history in pages, newest first, takes its time, and
its Content Security Policy forbids every script but its own file.
"""

import hashlib
import hmac
import json
import math
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import anyio
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from opentabs_py.demo.history import ChatMessage, past_messages, timestamp

PAGE_SIZE: Final = 25
MAX_TEXT: Final = 2000  # characters of a message
_MAX_BODY: Final = 16 * 1024  # bytes; holds any message of MAX_TEXT characters, escaped
_COOKIE: Final = "demo_session"
_ME: Final = "You"
_STATIC: Final = Path(__file__).with_name("static")

_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)

_Handler = Callable[[Request], Awaitable[Response]]


def create_demo_site(*, page_delay: float = 0.15) -> Starlette:
    """Create the site, with its own history and session secret.

    Args:
        page_delay: Seconds that each page of history takes to come, so that a person
            can watch an export run.
    """
    site = _Site(page_delay)
    return Starlette(
        routes=[
            Route("/", site.home),
            Mount("/static", StaticFiles(directory=_STATIC)),
            Route("/api/channels", site.signed_in(site.list_channels)),
            Route("/api/channels/{channel}/messages", site.signed_in(site.read), methods=["GET"]),
            Route("/api/channels/{channel}/messages", site.signed_in(site.write), methods=["POST"]),
        ],
        middleware=[Middleware(_SecurityHeaders)],
    )


class _Site:
    """The channels, and the site's responses about them."""

    def __init__(self, page_delay: float) -> None:
        self._page_delay = page_delay
        self._channels = past_messages()
        self._secret = secrets.token_bytes(32)

    async def home(self, request: Request) -> Response:
        response = FileResponse(_STATIC / "index.html", headers={"cache-control": "no-store"})
        if not self._is_signed_in(request):
            visitor = secrets.token_hex(8)
            response.set_cookie(
                _COOKIE, f"{visitor}.{self._signature(visitor)}", httponly=True, samesite="lax"
            )
        return response

    def signed_in(self, handler: _Handler) -> _Handler:
        """Let only requests with a session of this site through."""

        async def guarded(request: Request) -> Response:
            if self._is_signed_in(request):
                return await handler(request)
            return _refusal(401, "not_signed_in", "No session. Open the site's page first.")

        return guarded

    async def list_channels(self, request: Request) -> Response:
        del request  # every session sees every channel
        channels = [
            {"id": name, "name": name.capitalize(), "messages": len(messages)}
            for name, messages in self._channels.items()
        ]
        return JSONResponse({"channels": channels})

    async def read(self, request: Request) -> Response:
        """Return one page of a channel: 25 messages, newest first, before the cursor."""
        messages = self._channels.get(request.path_params["channel"])
        if messages is None:
            return _no_channel(request)
        cursor = request.query_params.get("cursor") or str(len(messages))
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
            return _refusal(400, "bad_cursor", "The cursor is none that this site gave out.")
        if "view" not in request.query_params:  # the page's own scrolling is not slowed down
            await anyio.sleep(self._page_delay)
        # A cursor counts from the oldest message, so that new messages do not shift pages.
        end = min(int(cursor), len(messages))
        start = max(0, end - PAGE_SIZE)
        total_pages = max(1, math.ceil(len(messages) / PAGE_SIZE))
        page = total_pages - math.ceil(end / PAGE_SIZE) + 1 if end else 1
        body: dict[str, object] = {
            "messages": [asdict(message) for message in reversed(messages[start:end])],
            "totalPages": total_pages,
        }
        if start > 0:
            body["nextCursor"] = str(start)
        # Tell observers, such as this site's page, which page this was, and of how many.
        timing = {"server-timing": f'page;desc="{page}/{total_pages}"'}
        return JSONResponse(body, headers=timing)

    async def write(self, request: Request) -> Response:
        messages = self._channels.get(request.path_params["channel"])
        if messages is None:
            return _no_channel(request)
        text = await _read_text(request)
        if text is None:
            return _refusal(
                400, "bad_message", f'Send {{"text": ...}} of 1 to {MAX_TEXT} characters as JSON.'
            )
        message = ChatMessage(text, _ME, _next_timestamp(messages))
        messages.append(message)
        return JSONResponse({"message": asdict(message)}, status_code=201)

    def _is_signed_in(self, request: Request) -> bool:
        visitor, _, signature = request.cookies.get(_COOKIE, "").partition(".")
        return hmac.compare_digest(signature.encode(), self._signature(visitor).encode())

    def _signature(self, visitor: str) -> str:
        return hmac.new(self._secret, visitor.encode(), hashlib.sha256).hexdigest()


async def _read_text(request: Request) -> str | None:
    # Only a page of this site can send JSON here: elsewhere it would need a preflight.
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return None
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BODY:
            return None
    try:
        sent: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return None
    text = sent.get("text") if isinstance(sent, dict) else None
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        return None
    return text.encode(errors="replace").decode()  # JSON can escape what UTF-8 cannot hold


def _next_timestamp(messages: list[ChatMessage]) -> str:
    now = datetime.now(UTC)
    if messages:
        now = max(now, datetime.fromisoformat(messages[-1].timestamp) + timedelta(milliseconds=1))
    return timestamp(now)


def _no_channel(request: Request) -> Response:
    name = request.path_params["channel"]
    return _refusal(404, "no_such_channel", f"There is no channel {name!r}.")


def _refusal(status: int, error: str, message: str) -> Response:
    return JSONResponse({"error": error, "message": message}, status_code=status)


class _SecurityHeaders:
    """Adds the headers that lock down a page to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_locked_down(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = _CSP
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "same-origin"
            await send(message)

        await self._app(scope, receive, send_locked_down)
