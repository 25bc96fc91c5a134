"""An MCP client for long-running tools: ordered progress, extensible deadlines, and streams.

It wraps the client of the MCP SDK, whose progress callbacks may run out of order and after the
call has returned, and whose deadlines are not extended by progress.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from ipaddress import ip_address
from itertools import count
from math import inf
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

import anyio
import httpx2
from anyio.abc import TaskGroup
from mcp import types
from mcp.client import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams

from opentabs_py import stacks
from opentabs_py.core import codes
from opentabs_py.core.plugin_names import GATEWAY_CALL
from opentabs_py.errors import CallTimeoutError, ErrorDetail

logger = logging.getLogger(__name__)

KEPT_CALLS: Final = 1_000  # ended calls that may still get late updates
READ_AGAIN: Final = 20.0  # s; how long one request for a stream's updates waits
CONNECT_WITHIN: Final = 30.0  # s
READ_WITHIN: Final = 300.0  # s without any byte; both as in the SDK
ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None] | None]
OnMessage = Callable[[str], Awaitable[None] | None]


class _Listener:
    """A program's own function; of its errors, only the first is logged, and a call goes on."""

    def __init__(self, function: Callable[..., Awaitable[None] | None]) -> None:
        self._function = function
        self._has_failed = False

    async def notify(self, *what: Any) -> None:
        try:
            done = self._function(*what)
            if isawaitable(done):
                await done
        except Exception:
            if not self._has_failed:
                logger.exception("A listener of an MCP call failed")
            self._has_failed = True


@dataclass(slots=True)
class _Call:
    idle_scope: anyio.CancelScope
    idle: float
    on_progress: _Listener | None
    is_through_gateway: bool
    waiting: deque[types.ProgressNotification] = field(
        default_factory=deque[types.ProgressNotification]
    )
    changed: anyio.Event = field(default_factory=anyio.Event)
    seen: dict[str, int] = field(default_factory=dict[str, int])  # the last update of each stream
    followed: set[str] = field(default_factory=set[str])
    has_result: bool = False
    is_over: bool = False  # later messages are late


class Client:
    """A connection to an MCP server, of either era.

        async with Client("http://127.0.0.1:8377/mcp", on_message=print) as client:
            result = await client.call_tool("export", {"query": "x"}, progress_callback=show)

    Args:
        server: A URL, a `StdioServerParameters`, a transport, or an MCP server in this process. A
            URL of this machine is connected to directly, whatever proxy the environment names.
        mode: As for the SDK's client: `auto` uses the newest revision both sides support,
            `legacy` one of the initialize era.
        on_message: Called with `[tool:NAME] text` for each update of a tool's stream, in order,
            during the call and after it; for an agent's transcript.
        idle: Seconds without progress that end a call; progress restarts the timer.
        ceiling: Seconds that a call may take, regardless of progress.
        options: Further options of the SDK's client.
    """

    def __init__(
        self,
        server: Any,
        *,
        mode: str = "auto",
        on_message: OnMessage | None = None,
        idle: float = inf,
        ceiling: float = inf,
        **options: Any,
    ) -> None:
        if isinstance(server, Server):
            server = _in_memory(cast(Any, server))
        elif isinstance(server, str):
            server = over_http(server)
        # Without the cache, because it may reorder messages.
        options.setdefault("cache", None)
        self._sdk = SdkClient(server, mode=mode, message_handler=self._handle, **options)
        self._on_message = None if on_message is None else _Listener(on_message)
        self._idle, self._ceiling = idle, ceiling
        self._calls: dict[types.ProgressToken, _Call] = {}
        self._numbers = count(1)
        self._late: deque[tuple[_Call, types.ProgressNotification]] = deque()
        self._has_late = anyio.Event()
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            Exception: The error of the transport or of the protocol, such as `httpx2.ConnectError`
                or `mcp.MCPError`; not in an `ExceptionGroup`, as the SDK raises it.
        """
        try:
            await self._stack.enter_async_context(self._sdk)
        except ExceptionGroup as group:
            raise stacks.innermost(group) from group
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        self._stack.callback(self._tasks.cancel_scope.cancel)
        self._tasks.start_soon(self._deliver_late)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection, and stop following streams.

        Raises:
            Exception: The error that has ended the connection, which has also cancelled what was
                within this context; as when connecting, not in an `ExceptionGroup`.
        """
        try:
            await stacks.close(self._stack)
        except ExceptionGroup as group:
            raise stacks.innermost(group) from group

    @property
    def sdk(self) -> SdkClient:
        """The SDK's client, for everything except tool calls."""
        return self._sdk

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        progress_callback: ProgressCallback | None = None,
        idle: float | None = None,
        ceiling: float | None = None,
    ) -> types.CallToolResult:
        """Call a tool.

        Args:
            name: As in `tools/list`.
            arguments: They must match the tool's schema.
            progress_callback: Called with the progress, total and message of each report, as by
                the SDK, but one at a time, and for the last report before this returns.
            idle: Overrides the client's.
            ceiling: Overrides the client's.

        Raises:
            CallTimeoutError: A deadline ended the call; the server was notified.
        """
        idle = self._idle if idle is None else idle
        total = self._ceiling if ceiling is None else ceiling
        # With our own token, all progress arrives at the SDK's message handler, in order.
        token = f"opentabs-{next(self._numbers)}"
        result: types.CallToolResult | None = None
        failure: Exception | None = None
        total_scope, idle_scope = anyio.CancelScope(), anyio.CancelScope()
        now = anyio.current_time()
        total_scope.deadline, idle_scope.deadline = now + total, now + idle
        on_progress = None if progress_callback is None else _Listener(progress_callback)
        call = self._calls[token] = _Call(
            idle_scope, idle, on_progress, is_through_gateway=name == GATEWAY_CALL
        )
        self._forget_an_ended_call()
        try:
            with total_scope, idle_scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._deliver, call)
                    try:
                        result = await self._sdk.call_tool(
                            name, dict(arguments or {}), meta=cast(Any, {"progressToken": token})
                        )
                    except Exception as error:  # noqa: BLE001
                        # Raised below, because the task group would wrap it. The SDK wraps what its
                        # callbacks raise.
                        failure = stacks.innermost(error)
                    call.has_result = True
                    call.changed.set()
        finally:
            call.is_over = True
            if result is None and failure is None:  # timed out or cancelled: nothing follows
                self._calls.pop(token, None)
        if failure is not None:
            raise failure
        if result is None:
            if idle_scope.cancelled_caught:
                raise _timed_out(name, "idle", idle)
            raise _timed_out(name, "ceiling", total)
        self._follow_streams(call, result)
        return result

    def _forget_an_ended_call(self) -> None:
        if len(self._calls) > KEPT_CALLS:
            over = next((token for token, call in self._calls.items() if call.is_over), None)
            if over is not None:
                del self._calls[over]

    def _follow_streams(self, call: _Call, result: types.CallToolResult) -> None:
        named: Any = (result.meta or {}).get("opentabs/streams")
        if self._on_message is None or not isinstance(named, list):
            return
        for each in cast(Sequence[Any], named):
            match each:
                case {"id": str(stream_id), "name": str(name)}:
                    call.followed.add(name)
                    self._tasks.start_soon(self._follow, call, stream_id, name)
                case _:
                    pass

    async def _follow(self, call: _Call, stream_id: str, name: str) -> None:
        try:
            await self._read_stream(call, stream_id, name)
        except Exception:
            # A bad message or a broken connection must not affect other calls.
            logger.exception("Stopped following the stream %s", name)

    async def _read_stream(self, call: _Call, stream_id: str, name: str) -> None:
        """Read a stream to its end, skipping updates that were already pushed."""
        while True:
            after = call.seen.get(name, 0)
            asked = {"id": stream_id, "after": after, "wait_seconds": READ_AGAIN}
            if call.is_through_gateway:
                given = {"name": "stream_read", "arguments": asked}
                answer = await self._sdk.call_tool(GATEWAY_CALL, given)
            else:
                answer = await self._sdk.call_tool("stream_read", asked)
            match answer.structured_content:
                case {"updates": updates, "open": is_open, "more": more}:
                    for update in updates:
                        if update["n"] > call.seen.get(name, 0):
                            call.seen[name] = update["n"]
                            await self._emit(name, update["text"])
                    if not (is_open or more):
                        return
                case _:
                    logger.warning("Cannot read the stream %s: %s", name, answer.content)
                    return

    async def _handle(self, message: object) -> None:
        """Handle messages in order of arrival: nothing is awaited before one is stored."""
        match message:
            case types.ProgressNotification():
                call = self._calls.get(message.params.progress_token)
                if call is not None:
                    self._keep(call, message)
            case types.LoggingMessageNotification(params=params) if "tool_name" in (
                params.meta or {}
            ):
                await self._emit(str(params.logger), str(params.data))
            case _:
                pass

    def _keep(self, call: _Call, message: types.ProgressNotification) -> None:
        if call.is_over:
            self._late.append((call, message))
            self._has_late.set()
        else:
            call.idle_scope.deadline = anyio.current_time() + call.idle
            call.waiting.append(message)
            call.changed.set()

    async def _deliver(self, call: _Call) -> None:
        while True:
            while call.waiting:
                await self._pass_on(call, call.waiting.popleft())
            if call.has_result:
                return
            call.changed = anyio.Event()
            await call.changed.wait()

    async def _deliver_late(self) -> None:
        while True:
            while self._late:
                await self._pass_on(*self._late.popleft())
            self._has_late = anyio.Event()
            await self._has_late.wait()

    async def _pass_on(self, call: _Call, message: types.ProgressNotification) -> None:
        params = message.params
        if call.on_progress is not None and not call.is_over:
            await call.on_progress.notify(params.progress, params.total, params.message)
        name: Any = cast(Mapping[str, Any], params.meta or {}).get("tool_name")
        if not isinstance(name, str):
            return
        number, seen = int(params.progress), call.seen.get(name, 0)
        # If some are missing, reading the stream will find them.
        if number > seen and (number == seen + 1 or name not in call.followed):
            call.seen[name] = number
            await self._emit(name, params.message or "")

    async def _emit(self, name: str, text: str) -> None:
        if self._on_message is not None:
            await self._on_message.notify(f"[tool:{name}] {text}")


def _timed_out(name: str, which: Literal["idle", "ceiling"], seconds: float) -> CallTimeoutError:
    what = "no progress for" if which == "idle" else "it took more than"
    message = (
        f"The client gave up on {name}: {what} {seconds:g} s. The server was notified, but the "
        "tool may already have finished; check before retrying."
    )
    code = codes.TIMEOUT_IDLE if which == "idle" else codes.TIMEOUT_CEILING
    detail = ErrorDetail(code, message, category="timeout")
    return CallTimeoutError(detail, timer=which)


@asynccontextmanager
async def over_http(url: str) -> AsyncGenerator[Any]:
    """Connect to a server by its URL: a transport for the SDK's client.

    The SDK's own transport limits messages to 1 MiB, and uses a proxy even for this machine.
    """
    timeout = httpx2.Timeout(CONNECT_WITHIN, read=READ_WITHIN)
    async with (
        httpx2.AsyncClient(timeout=timeout, trust_env=not _is_local(url)) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=None) as streams,
    ):
        yield streams


def _is_local(url: str) -> bool:
    host = httpx2.URL(url).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@asynccontextmanager
async def _in_memory(server: "Server[Any]") -> AsyncGenerator[Any]:
    async with (
        create_client_server_memory_streams() as (ours, theirs),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *theirs, server.create_initialization_options())
        yield ours
        tasks.cancel_scope.cancel()
