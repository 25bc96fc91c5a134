"""A client of NATS that keeps to TLS, and that only its owner closes."""

import logging
from pathlib import Path
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

    def _connect_command(self) -> bytes:
        """Return the first message of each connection, with the credentials.

        Raises:
            NatsError: Their file cannot be used. The base class would never try again.
        """
        file = self._user_credentials
        if not isinstance(file, str):
            return super()._connect_command()
        if b"BEGIN NATS USER JWT" not in Path(file).read_bytes():  # which would be read without end
            raise NatsError(f"there are no credentials in {file}")
        try:
            return super()._connect_command()
        except Exception as error:  # of several libraries
            raise NatsError(f"the credentials in {file} are not valid") from error

    async def _process_err(self, err_msg: str) -> None:
        """Handle an error that the server reports on a connection."""
        if PERMISSIONS_ERR in err_msg or STALE_CONNECTION in err_msg:
            await super()._process_err(err_msg)
        else:
            logger.warning("NATS ended the connection: %s", err_msg.strip("'"))
            await self._process_op_err(NatsError(err_msg))

    async def _connect_to_server(self, s: Any) -> None:
        """Connect to a server, and close the last connection, which may have failed later."""
        transport: Any = self._transport  # which has no types
        if transport is not None:
            transport.close()
        await super()._connect_to_server(s)

    async def close(self) -> None:
        """Disconnect, also if a connection that failed was being closed when that was cancelled."""
        await super().close()
        transport: Any = self._transport  # which has no types
        if transport is not None:
            transport.close()
