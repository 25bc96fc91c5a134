"""Accept an extension's connection: check its secret and its hello, and find its browser."""

import hmac
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import anyio

from opentabs_py.bridge.connection import Connection, Socket, SocketClosedError
from opentabs_py.core import protocol
from opentabs_py.core.wire import InvalidHello, OtherHello

logger = logging.getLogger(__name__)

HELLO_WITHIN: Final = 10.0  # s; the extension sends it as soon as the socket is open
LONGEST_REASON: Final = 123  # bytes; RFC 6455, sections 5.5 and 5.5.1: 125 less those of the code


class ConnectionHandler(Protocol):
    """Handles the connection of one browser's extension."""

    async def read(self, connection: Connection, hello: protocol.Hello) -> None:
        """Handle what the extension sends, from its hello on, until the connection ends."""
        ...

    async def send_activity(self, connection: Connection) -> None:
        """Send what the extension shows, from its hello on, until cancelled."""
        ...

    def handle_disconnected(self, connection: Connection) -> None:
        """Handle the end of the connection."""
        ...


def offers_secret(subprotocols: Sequence[str], secret: str) -> bool:
    """Return whether one of the offered subprotocols carries a secret."""
    wanted = f"{protocol.SECRET_SUBPROTOCOL}{secret}".encode()
    return any(hmac.compare_digest(offered.encode(), wanted) for offered in subprotocols)


def secrets_match(given: str, secret: str) -> bool:
    """Compare a string with a secret in constant time; an empty secret never matches."""
    return bool(secret) and hmac.compare_digest(given.encode(), secret.encode())


async def serve_connection(
    socket: Socket,
    find_handler: Callable[[protocol.HelloParams], ConnectionHandler],
    *,
    message_limit: int,
) -> None:
    """Serve one accepted connection until it ends.

    Args:
        socket: The connection.
        find_handler: Returns what handles the connection of the browser that a hello comes from.
        message_limit: The longest message in either direction, in characters.
    """
    connection = Connection(socket, message_limit=message_limit)
    handler: ConnectionHandler | None = None

    async def keep_alive() -> None:
        await connection.keep_alive()
        logger.warning("The extension does not answer; its connection was closed")
        tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(connection.write)
            try:
                hello = await _receive_hello(connection)
                if hello is not None:
                    handler = find_handler(hello.params)
                    tasks.start_soon(keep_alive)  # both after `read` has answered
                    tasks.start_soon(handler.send_activity, connection)
                    await handler.read(connection, hello)
            except SocketClosedError:
                logger.debug("The extension's connection ended")
            tasks.cancel_scope.cancel()
    finally:
        connection.abandon_requests()
        if handler is not None:
            handler.handle_disconnected(connection)


async def _receive_hello(connection: Connection) -> protocol.Hello | None:
    """Return the extension's hello; None if it sends none, a malformed one or another version's."""
    hello = None
    with anyio.move_on_after(HELLO_WITHIN):
        while True:
            hello = await connection.receive()
            if isinstance(hello, protocol.Hello | OtherHello | InvalidHello):
                break
            connection.refuse("send hello first")
    match hello:
        case protocol.Hello():
            return hello
        case OtherHello(protocol_version=version):
            reason = (
                f"protocol {version}, wanted {protocol.PROTOCOL_VERSION}: "
                "update the extension and reload it"
            )
            await connection.close(protocol.CLOSE_BAD_VERSION, reason)
        case InvalidHello(reason=reason, path=path):
            advice = "malformed hello: update the extension and reload it"
            text = f"{advice} ({path}: {reason})".encode()[:LONGEST_REASON].decode(errors="ignore")
            await connection.close(protocol.CLOSE_INVALID_HELLO, text)
        case _:
            await connection.close(protocol.CLOSE_NO_HELLO, f"no hello within {HELLO_WITHIN:g} s")
    return None
