"""What stands between the network and what is served."""

import asyncio
import hmac
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

# What a client leaves unread is kept up to here, so that a stream of a session that it does not
# read holds up no other of that session; one that then reads nothing for a minute is cut off.
UNREAD_LIMIT: Final = 8 * 1024 * 1024  # bytes, of one connection
READ_WITHIN = 60.0  # s


def local_hosts(host: str = "127.0.0.1") -> list[str]:
    """Give the names that this machine may be asked for by, an address that it listens on included.

    A name that someone else's DNS points here is none of them.
    """
    return sorted({"127.0.0.1", "localhost", "[::1]", host})


class RequireToken:
    """Lets only requests with the bearer token (RFC 6750) to what is for MCP clients."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on, or answer 401."""
        if scope["type"] == "http":
            given = Headers(scope=scope).get("authorization", "")
            if not hmac.compare_digest(given.encode(), self._wanted):
                refusal = JSONResponse(
                    {"error": "Send the server's token, as in `Authorization: Bearer TOKEN`."},
                    status_code=401,
                    headers={"WWW-Authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class PatientProtocol(H11Protocol):
    """Keeps what a client has not read yet, within a bound, and cuts off one that stopped."""

    _cut: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Let more be kept than asyncio would."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=UNREAD_LIMIT)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the extension's socket as it is."""
        self.transport.set_write_buffer_limits()  # the extension's frames wait for one another
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """Wait for the client, but not for ever."""
        super().pause_writing()
        self._cut = asyncio.get_running_loop().call_later(READ_WITHIN, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        super().connection_lost(exc)
        self._wait_no_longer()

    def _wait_no_longer(self) -> None:
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None
