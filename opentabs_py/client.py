"""An MCP client for long-running tools: progress in order, deadlines that it moves, and streams.

It wraps the client of the MCP SDK, whose progress callbacks may run out of order and after the
call has returned, and whose deadlines progress does not move.
"""

import logging
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from itertools import count
from math import inf
from types import TracebackType
from typing import Any, Final, Literal, Self, cast

import anyio
from anyio.abc import TaskGroup
from mcp import types
from mcp.client import Client as SdkClient
from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams

from opentabs_py import stacks
from opentabs_py.errors import CallTimeoutError, ErrorDetail

logger = logging.getLogger(__name__)

KEPT_CALLS: Final = 1_000  # that late updates may still come for
READ_AGAIN: Final = 20.0  # s; how long one question for a stream's updates waits for them
OnProgress = Callable[[float, float | None, str | None], Awaitable[None] | None]
OnMessage = Callable[[str], Awaitable[None] | None]


@dataclass(slots=True)
class _Call:
    idle: anyio.CancelScope
    idle_timeout: float
    on_progress: OnProgress | None
    waiting: deque[types.ProgressNotification] = field(
        default_factory=deque[types.ProgressNotification]
    )
    changed: anyio.Event = field(default_factory=anyio.Event)
    seen: dict[str, int] = field(default_factory=dict[str, int])  # of each stream, its last update
    followed: set[str] = field(default_factory=set[str])
    has_result: bool = False
    is_over: bool = False  # what comes now is late


class Client:
    """A connection to an MCP server, of either era.

        async with Client("http://127.0.0.1:8377/mcp", on_message=print) as client:
            result = await client.call_tool("export", {"query": "x"}, on_progress=show)

    Args:
        server: A URL, a `StdioServerParameters`, a transport, or an MCP server of this process.
        mode: As the SDK's client takes it: `auto` speaks the newest revision that both know,
            `legacy` one of the initialize era.
        on_message: Called with `[tool:NAME] text` for each update of a tool's stream, in order,
            during the call and after it; for the transcript of an agent.
        idle_timeout: Seconds without progress that end a call; progress starts them anew.
        total_timeout: Seconds that a call may take, whatever comes.
        options: The SDK client's own.
    """

    def __init__(
        self,
        server: Any,
        *,
        mode: str = "auto",
        on_message: OnMessage | None = None,
        idle_timeout: float = inf,
        total_timeout: float = inf,
        **options: Any,
    ) -> None:
        if isinstance(server, Server):
            server = _in_memory(cast(Any, server))
        # Without the cache, whose work may let one message pass another.
        options.setdefault("cache", None)
        self._sdk = SdkClient(server, mode=mode, message_handler=self._take, **options)
        self._on_message = on_message
        self._idle_timeout, self._total_timeout = idle_timeout, total_timeout
        self._calls: dict[types.ProgressToken, _Call] = {}
        self._numbers = count(1)
        self._late: deque[tuple[_Call, types.ProgressNotification]] = deque()
        self._has_late = anyio.Event()
        self._stack = AsyncExitStack()
        self._tasks: TaskGroup

    async def __aenter__(self) -> Self:
        """Connect."""
        await self._stack.enter_async_context(self._sdk)
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
        """Close the connection; streams that go on are followed no longer."""
        await stacks.close(self._stack)

    @property
    def sdk(self) -> SdkClient:
        """The SDK's client, for all that is not a call of a tool."""
        return self._sdk

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: OnProgress | None = None,
        idle_timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> types.CallToolResult:
        """Call a tool.

        Args:
            name: As `tools/list` names it.
            arguments: What its schema asks for.
            on_progress: Called with progress, total and message of each report, one after the
                other, the last of them before this returns.
            idle_timeout: Instead of the client's own.
            total_timeout: Instead of the client's own.

        Raises:
            CallTimeoutError: A deadline ended the call; the server was told.
        """
        idle = self._idle_timeout if idle_timeout is None else idle_timeout
        total = self._total_timeout if total_timeout is None else total_timeout
        # A token of our own: so all progress comes by the SDK's handler of messages, in order.
        token = f"opentabs-{next(self._numbers)}"
        result: types.CallToolResult | None = None
        failure: Exception | None = None
        total_scope, idle_scope = anyio.CancelScope(), anyio.CancelScope()
        now = anyio.current_time()
        total_scope.deadline, idle_scope.deadline = now + total, now + idle
        call = self._calls[token] = _Call(idle_scope, idle, on_progress)
        if len(self._calls) > KEPT_CALLS:
            del self._calls[next(iter(self._calls))]
        with total_scope, idle_scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._deliver, call)
                try:
                    result = await self._sdk.call_tool(
                        name, dict(arguments or {}), meta=cast(Any, {"progressToken": token})
                    )
                except Exception as error:  # noqa: BLE001
                    failure = error  # raised below, for the task group would wrap it
                call.has_result = True
                call.changed.set()
        call.is_over = True
        if failure is not None:
            raise failure
        if result is None:
            self._calls.pop(token, None)
            if idle_scope.cancelled_caught:
                raise _timed_out(name, "idle", idle)
            raise _timed_out(name, "ceiling", total)
        self._follow_streams(call, result)
        return result

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
            # Of what the server says, or of the connection: other calls go on.
            logger.exception("The stream %s is followed no longer", name)

    async def _read_stream(self, call: _Call, stream_id: str, name: str) -> None:
        """Read a stream to its end, and pass over what has come by itself."""
        while True:
            after = call.seen.get(name, 0)
            asked = {"id": stream_id, "after": after, "wait_seconds": READ_AGAIN}
            answer = await self._sdk.call_tool("stream_read", asked)
            match answer.structured_content:
                case {"updates": updates, "open": is_open, "more": more}:
                    for update in updates:
                        if update["n"] > call.seen.get(name, 0):
                            call.seen[name] = update["n"]
                            await self._say(name, update["text"])
                    if not (is_open or more):
                        return
                case _:
                    logger.warning("The stream %s cannot be read: %s", name, answer.content)
                    return

    async def _take(self, message: object) -> None:
        """Take a message, in the order in which they come: nothing is awaited before it is kept."""
        match message:
            case types.ProgressNotification():
                call = self._calls.get(message.params.progress_token)
                if call is not None:
                    self._keep(call, message)
            case types.LoggingMessageNotification(params=params) if "tool_name" in (
                params.meta or {}
            ):
                await self._say(str(params.logger), str(params.data))
            case _:
                pass

    def _keep(self, call: _Call, message: types.ProgressNotification) -> None:
        if call.is_over:
            self._late.append((call, message))
            self._has_late.set()
        else:
            call.idle.deadline = anyio.current_time() + call.idle_timeout
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
            await _tell(call.on_progress, params.progress, params.total, params.message)
        name: Any = cast(Mapping[str, Any], params.meta or {}).get("tool_name")
        if not isinstance(name, str):
            return
        number, seen = int(params.progress), call.seen.get(name, 0)
        # Where some are missing, whoever reads the stream will find them.
        if number > seen and (number == seen + 1 or name not in call.followed):
            call.seen[name] = number
            await self._say(name, params.message or "")

    async def _say(self, name: str, text: str) -> None:
        if self._on_message is not None:
            await _tell(self._on_message, f"[tool:{name}] {text}")


async def _tell(listener: Callable[..., Awaitable[None] | None], *what: Any) -> None:
    try:
        done = listener(*what)
        if isawaitable(done):
            await done
    except Exception:
        logger.exception("What listens to an MCP call failed")


def _timed_out(name: str, which: Literal["idle", "ceiling"], seconds: float) -> CallTimeoutError:
    what = "no progress came for" if which == "idle" else "it took more than"
    message = (
        f"The client gave up on {name}: {what} {seconds:g} s. The server was told; the tool may "
        "have done its work: check before you call again."
    )
    detail = ErrorDetail(f"TIMEOUT_{which.upper()}", message, category="timeout")
    return CallTimeoutError(detail, which=which)


@asynccontextmanager
async def _in_memory(server: "Server[Any]") -> AsyncGenerator[Any]:
    async with (
        create_client_server_memory_streams() as (ours, theirs),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(server.run, *theirs, server.create_initialization_options())
        yield ours
        tasks.cancel_scope.cancel()
