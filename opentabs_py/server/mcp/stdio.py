"""MCP over stdin and stdout: only protocol messages on stdout, and an immediate shutdown.

The SDK reads stdin in a thread that only the client can end. This transport reads the pipe on
the event loop, so a signal stops it, and a message costs less.
"""

import array
import asyncio
import json
import logging
import os
import stat
import sys
from collections.abc import AsyncGenerator, Iterator
from itertools import chain
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.server.lowlevel import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError
from pydantic_core import from_json

from opentabs_py.core.text import well_formed
from opentabs_py.server.mcp.answers import Prepared
from opentabs_py.server.mcp.request_ids import explain_invalid, explain_taken

logger = logging.getLogger(__name__)

READ_WITHIN = 1.0  # s; a client that takes longer to read its progress may lose some
LOOK_EVERY = 0.001  # s
_PIECE = 1024 * 1024  # bytes


class Slots:
    """Where the handlers of running requests put prepared parts of their answers."""

    def __init__(self) -> None:
        self._slots: dict[types.RequestId, Prepared] = {}

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, request_id: types.RequestId) -> bool:
        """Return whether a request with this id is still running."""
        return request_id in self._slots

    def receive(self, message: types.JSONRPCMessage) -> SessionMessage:
        """Return a message for the server; a request, whose id must be free, has a slot with it."""
        if not isinstance(message, types.JSONRPCRequest):
            return SessionMessage(message)

        async def forget() -> None:
            self._slots.pop(message.id, None)

        slot = self._slots[message.id] = Prepared()
        return SessionMessage(
            message, ServerMessageMetadata(request_context=slot, on_request_unanswered=forget)
        )

    def send(self, message: types.JSONRPCMessage) -> Iterator[bytes]:
        """Yield the line of the server's message, with what was prepared for it put in."""
        line = _to_line(message)
        slot = self._take(message)
        if slot is None or slot.placeholder not in line:
            yield line
            return
        before, _, after = line.partition(slot.placeholder)
        parts = chain((before,), slot.parts(), (after,))
        if slot.length <= _PIECE:
            yield b"".join(parts)  # each part would be a write
        else:
            yield from parts

    def _take(self, message: types.JSONRPCMessage) -> Prepared | None:
        """Return the slot of the request that a message answers, if something was put there."""
        match message:
            case types.JSONRPCResponse() | types.JSONRPCError() if message.id is not None:
                slot = self._slots.pop(message.id, None)
                return slot if slot is not None and slot.placeholder else None
            case _:
                return None


class _Refusal(SessionMessage):
    """This transport's own answer, to a request that the server never gets."""


def _to_line(message: types.JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


async def serve_stdio(server: Server[Any], *, line_limit: int) -> None:
    """Serve one client until it closes stdin.

    From then on, file descriptor 1 is stderr and 0 is empty, so that no output of ours or of a
    child process reaches the client.

    Args:
        server: The MCP server.
        line_limit: The longest message, in bytes. A longer one is dropped as it arrives, and
            answered with an error.
    """
    wire_in, wire_out = os.dup(0), os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    reader, writer = await _open_pipes(wire_in, wire_out, line_limit)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    slots = Slots()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, reader, to_server, to_client.clone(), line_limit, slots)
        tasks.start_soon(_write, writer, wire_out, from_server, slots)
        await server.run(from_client, to_client, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _open_pipes(
    wire_in: int, wire_out: int, line_limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=line_limit)
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(wire_in, "rb")
    )
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(wire_out, "wb")
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _read(
    reader: asyncio.StreamReader,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
    limit: int,
    slots: Slots,
) -> None:
    async with to_server, to_client:
        async for line in _lines(reader):
            if line is None:
                await to_client.send(_Refusal(_too_long(limit)))
                continue
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError as error:
                if (refusal := _refuse(line, error)) is not None:
                    await to_client.send(_Refusal(refusal))
                continue
            if (refusal := _refuse_id(line, message, slots)) is not None:
                await to_client.send(_Refusal(refusal))
            else:
                await to_server.send(slots.receive(message))


async def _lines(reader: asyncio.StreamReader) -> AsyncGenerator[bytes | None]:
    """Yield the lines; None for a line over the reader's limit, which is dropped."""
    is_too_long = False
    while True:
        try:
            line = await reader.readuntil()
        except asyncio.LimitOverrunError as error:
            left = error.consumed
            while left > 0:
                left -= len(await reader.read(min(left, _PIECE)))
            is_too_long = True
            continue
        except asyncio.IncompleteReadError as error:
            if error.partial and not is_too_long:
                yield error.partial
            return
        yield None if is_too_long else line
        is_too_long = False


def _too_long(limit: int) -> types.JSONRPCError:
    return _error(None, f"Dropped a message longer than {limit:,} bytes. Send less at a time.")


def _refuse(line: bytes, error: ValidationError) -> types.JSONRPCError | None:
    """Return the answer to a line that is not a message; None if its sender expects none.

    Its id is read all the same, because the client waits for an answer with that id.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    code, why = types.INVALID_REQUEST, "it is not a JSON-RPC message"
    if first["type"] == "json_invalid":
        code, why = types.PARSE_ERROR, first["msg"]
    try:
        sent: object = json.loads(line)  # which accepts more: half of a character, deeper nesting
    except (ValueError, RecursionError):
        sent = None
    number: object = None
    if isinstance(sent, dict):
        known = cast("dict[str, object]", sent)
        if not {"id", "method"} <= known.keys():
            logger.warning("The client sent something that is not valid: %s", why)
            return None
        number = known["id"]
    if isinstance(number, bool) or not isinstance(number, int | str):
        number = None
    if isinstance(number, str) and well_formed(number) != number:
        number = None  # an answer cannot carry it
    return _error(number, f"Cannot read the request: {why}.", code)


def _refuse_id(
    line: bytes, message: types.JSONRPCMessage, slots: Slots
) -> types.JSONRPCError | None:
    """Return the answer to a request whose id it cannot have; None if there is nothing wrong."""
    match message:
        case types.JSONRPCRequest() if message.id in slots:
            # Nothing would tell their answers apart.
            return _error(message.id, explain_taken(message.id))
        case types.JSONRPCNotification():
            why = explain_invalid(from_json(line))
            return None if why is None else _error(None, why)
        case _:
            return None


def _error(
    request_id: types.RequestId | None, why: str, code: int = types.INVALID_REQUEST
) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=why)
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


async def _write(
    writer: asyncio.StreamWriter,
    pipe: int,
    from_server: MemoryObjectReceiveStream[SessionMessage],
    slots: Slots,
) -> None:
    notified = False
    async with from_server:
        try:
            async for message in from_server:
                if isinstance(message.message, types.JSONRPCNotification):
                    notified = True
                elif notified:
                    await _wait_until_read(writer, pipe)
                    notified = False
                # A refusal may have the id of a request that still runs, and does not answer it.
                is_ours = isinstance(message, _Refusal)
                sent = message.message
                for part in [_to_line(sent)] if is_ours else slots.send(sent):
                    writer.write(part)
                    await writer.drain()
        except (OSError, RuntimeError) as error:
            # The client stopped reading; it also closes our stdin, which ends the server.
            logger.debug("The client closed its end: %r", error)


async def _wait_until_read(writer: asyncio.StreamWriter, pipe: int) -> None:
    """Wait briefly until the client has read everything written so far.

    TypeScript clients lose progress that they read together with the result. A fixed delay
    between the two would be too short whenever the system schedules the client late.
    """
    with anyio.move_on_after(READ_WITHIN):
        # The system has no notification for a pipe being read.
        while writer.transport.get_write_buffer_size() or _count_unread(pipe):  # noqa: ASYNC110
            await anyio.sleep(LOOK_EVERY)


def _count_unread(pipe: int) -> int:
    """Return how much the client has not read yet; 0 if the system cannot tell."""
    if sys.platform == "win32":
        return 0
    import fcntl  # noqa: PLC0415 (there is none on Windows)
    import termios  # noqa: PLC0415

    # Clients in Node use a socket pair instead of a pipe.
    question = termios.TIOCOUTQ if stat.S_ISSOCK(os.fstat(pipe).st_mode) else termios.FIONREAD
    answer = array.array("i", [0])
    try:
        fcntl.ioctl(pipe, question, answer)
    except OSError:
        return 0
    return answer[0]
