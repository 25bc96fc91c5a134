"""A client of NATS that keeps to TLS."""

from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError


class NatsClient(Client):
    """Sends nothing without TLS where that is asked for: by the address, or by certificates.

    Its base class leaves that to the server, so anyone between the two could read the password.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Handle what the server says first on each connection, and whenever that changes."""
        server = self._current_server
        scheme = "" if server is None else server.uri.scheme
        if scheme == "tls" or (scheme == "nats" and "tls" in self.options):
            if not (info.get("tls_required") or info.get("tls_available")):
                raise NatsError("the server does not offer TLS")
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def close(self) -> None:
        """Disconnect, also if a connection that failed was being closed when that was cancelled."""
        await super().close()
        transport: Any = self._transport  # which has no types
        if transport is not None:
            transport.close()
