"""A client of NATS that keeps to TLS, and that only its owner closes."""

import logging
from typing import Any

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.protocol.parser import PERMISSIONS_ERR, STALE_CONNECTION

logger = logging.getLogger(__name__)


class NatsClient(Client):
    """Sends nothing without TLS where that is asked for: by the address, or by certificates.

    Its base class leaves that to the server, so anyone between the two could read the password.

    It reconnects also when the server ends the connection with an error, such as that the
    credentials have expired. Its base class would then never connect again.
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

    async def _process_err(self, err_msg: str) -> None:
        """Handle an error that the server reports on a connection."""
        if PERMISSIONS_ERR in err_msg or STALE_CONNECTION in err_msg:
            await super()._process_err(err_msg)
        else:
            logger.warning("NATS ended the connection: %s", err_msg.strip("'"))
            await self._process_op_err(NatsError(err_msg))

    async def close(self) -> None:
        """Disconnect, also if a connection that failed was being closed when that was cancelled."""
        await super().close()
        transport: Any = self._transport  # which has no types
        if transport is not None:
            transport.close()
