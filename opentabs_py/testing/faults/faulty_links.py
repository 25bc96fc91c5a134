"""Carry messages with faults: on the extension's socket, and on an MCP client's streams."""

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from math import inf
from typing import Any

import anyio
from pydantic import ValidationError

from opentabs_py.bridge.connection import Socket
from opentabs_py.core.fault_injection import Direction, Piece

Streams = tuple[Any, Any]  # the MCP SDK's streams: (read, write)
Transport = AbstractAsyncContextManager[Streams]
Apply = Callable[[Direction, str], list[Piece]]
"""Returns what to send in place of a message, and when."""


class FaultySocket:
    """The extension's socket, with faults.

    Args:
        socket: The real one.
        apply: Applies the faults to a message.
    """

    def __init__(self, socket: Socket, apply: Apply) -> None:
        self._socket = socket
        self._apply = apply
        self._arrived: list[Piece] = []
        self._begun: str | None = None  # the message that is being sent
        self._left: deque[Piece] = deque()  # what is left to send in its place
        self._due: float | None = None  # when the first of these is sent

    async def receive_text(self) -> str:
        """Return the next message, as `Socket` does."""
        while not self._arrived:
            self._arrived = self._apply("up", await self._socket.receive_text())
        piece = self._arrived.pop(0)
        await anyio.sleep(piece.after)
        return piece.text

    async def send_text(self, data: str) -> None:
        """Send a message, as `Socket` does; if this is cancelled, the next call continues it.

        A message that was not sent is sent again. Its faults must not be applied twice.
        """
        if data != self._begun:
            self._begun, self._left, self._due = data, deque(self._apply("down", data)), None
        while self._left:
            piece = self._left[0]
            if self._due is None:
                self._due = anyio.current_time() + piece.after
            await anyio.sleep_until(self._due)
            await self._socket.send_text(piece.text)
            self._left.popleft()
            self._due = None
        self._begun = None

    async def close(self, code: int, reason: str) -> None:
        """Close the socket, as `Socket` does."""
        await self._socket.close(code, reason)


@asynccontextmanager
async def faulty_streams(transport: Transport, apply: Apply) -> AsyncGenerator[Streams]:
    """Provide an MCP client's streams, with faults.

    Args:
        transport: The real ones.
        apply: Applies the faults to a message.
    """
    async with transport as (read, write), anyio.create_task_group() as tasks:
        to_client, from_server = anyio.create_memory_object_stream[Any](inf)
        from_client, to_server = anyio.create_memory_object_stream[Any](inf)
        async with from_server, from_client, to_server, to_client:
            tasks.start_soon(_pump, "up", read, to_client, apply)
            tasks.start_soon(_pump, "down", to_server, write, apply)
            yield from_server, from_client
            tasks.cancel_scope.cancel()


async def _pump(direction: Direction, source: Any, target: Any, apply: Apply) -> None:
    async with target:
        with suppress(anyio.BrokenResourceError):  # the reader left while a message was delayed
            async for item in source:
                if isinstance(item, Exception):
                    await target.send(item)
                    continue
                text = item.message.model_dump_json(by_alias=True, exclude_none=True)
                for piece in apply(direction, text):
                    await anyio.sleep(piece.after)
                    await target.send(item if piece.text == text else _corrupted(item, piece.text))


def _corrupted(item: Any, text: str) -> Any:
    """Return a corrupt text as a message, or as the SDK's exception if it is no longer valid."""
    # Tests import this file during collection, when importing the SDK would take half a second.
    from mcp import types
    from mcp.shared.message import SessionMessage

    try:
        message = types.jsonrpc_message_adapter.validate_json(text)
    except ValidationError as error:
        return error
    return SessionMessage(message=message, metadata=item.metadata)
