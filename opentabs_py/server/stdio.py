"""MCP over stdin and stdout: nothing but protocol on stdout, and an end that comes at once.

The SDK reads stdin in a thread, which nothing can end but the client. This transport reads
the pipe on the event loop, so a signal stops it, and a message costs less.
"""

import asyncio
import logging
import os
import sys
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

logger = logging.getLogger(__name__)

LINE_LIMIT = 512 * 1024 * 1024  # bytes; the toolbox has the limit that users see


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes stdin.

    While it runs, file descriptor 1 is stderr and 0 is empty, so that no print of ours or of
    a child process reaches the client.
    """
    wire_in, wire_out = os.dup(0), os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    reader, writer = await _open_pipes(wire_in, wire_out)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, reader, to_server)
        tasks.start_soon(_write, writer, from_server)
        await server.run(from_client, to_client, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _open_pipes(
    wire_in: int, wire_out: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(wire_in, "rb")
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb")
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _read(
    reader: asyncio.StreamReader, to_server: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    async with to_server:
        while line := await reader.readline():
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError as error:
                await to_server.send(error)
            else:
                await to_server.send(SessionMessage(message))


async def _write(
    writer: asyncio.StreamWriter, from_server: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    async with from_server:
        try:
            async for message in from_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()
        except (OSError, RuntimeError) as error:
            # The client reads no more; it closes our stdin too, which ends the server.
            logger.debug("The client closed its end: %r", error)
