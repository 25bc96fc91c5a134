"""The `mcp` fixture's value: a connected MCP client for synchronous tests."""

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

from mcp import types
from mcp.client import Client

from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.running import RunningCall
from opentabs_py.client import over_http
from opentabs_py.core.error_kinds import from_json
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import CallError
from opentabs_py.server.mcp.results import ERROR_META_KEY, FAILED_META_KEY
from opentabs_py.testing.arguments import merged
from opentabs_py.testing.call import Call
from opentabs_py.testing.sync_session import QUICK, SyncOpenTabs
from opentabs_py.testing.thread import ServerThread

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these


class SyncMcpClient:
    """An MCP client over Streamable HTTP. Its calls work like those of `opentabs`.

    A call's `progress` and `logs` are what the client received; `value` is the result's structured
    content, or its text if there is none.
    """

    def __init__(
        self,
        client: Client,
        thread: ServerThread,
        tabs: SyncOpenTabs,
        *,
        wants_progress: bool = True,
    ) -> None:
        self._client = client
        self._thread = thread
        self._tabs = tabs
        self._wants_progress = wants_progress
        self._running: list[RunningCall] = []

    def __repr__(self) -> str:
        return f"<SyncMcpClient {self._tabs.mcp_url}>"

    @property
    def without_progress(self) -> "SyncMcpClient":
        """The same client, whose calls do not ask for progress."""
        other = SyncMcpClient(self._client, self._thread, self._tabs, wants_progress=False)
        other._running = self._running
        return other

    def list_tools(self) -> list[types.Tool]:
        """Return the tools as clients see them."""
        return self._thread.run(self._client.list_tools, within=QUICK).tools

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """Call a tool by its MCP name, wait until it has ended, and return its value.

        Pass the tool's arguments as a mapping or as keywords: `call("chat_search", text="tea")`.

        Raises:
            CallError: The call failed; `error.detail` says why.
            TimeoutError: The clock stands still, and the tool does not end by itself.
            TypeError: An argument is given twice, or the mapping is not one.
        """
        return self._tabs.call_as("mcp.call", name, merged(arguments, more), self._run)

    def start(self, name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
        """Start a call and return it while it is running; `expect(call)` checks how it ends."""
        return self._tabs.start_as("mcp.start", name, merged(arguments, more), self._run)

    def _run(self, name: str, arguments: Mapping[str, Any]) -> RunningCall:
        schema = self._tabs.output_schema(name)
        running = self._thread.do(partial(RunningCall, name, arguments, output_schema=schema))
        caller = _McpCaller(self._client, wants_progress=self._wants_progress)
        self._thread.start(running.run, caller, None)
        self._running.append(running)
        return running

    def cancel_calls(self) -> None:
        """Cancel all calls that are still running."""
        for call in self._running:
            self._thread.do(call.cancel)
            self._thread.run(call.wait, within=QUICK)


@contextmanager
def connect_client(thread: ServerThread, tabs: SyncOpenTabs) -> Generator[SyncMcpClient]:
    """Yield a client that is connected as long as the context is open."""

    @asynccontextmanager
    async def connected() -> AsyncGenerator[Client]:
        async with Client(tabs.faults.wrap_streams(over_http(tabs.mcp_url))) as client:
            yield client

    with thread.open(connected()) as client:
        sync = SyncMcpClient(client, thread, tabs)
        try:
            yield sync
        finally:
            sync.cancel_calls()


class _McpCaller:
    """Calls tools through a client, and raises error results as the original exceptions."""

    def __init__(self, client: Client, *, wants_progress: bool) -> None:
        self._client = client
        self._wants_progress = wants_progress

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,  # noqa: ARG002 (the server's limits apply)
        observers: Sequence[CallObserver] = (),
    ) -> Any:
        count = 0

        async def note(progress: float, total: float | None, message: str | None) -> None:
            nonlocal count
            for observer in observers:
                observer.on_reports([ProgressReport(count, progress, total, message)])
            count += 1

        for observer in observers:
            observer.on_sent()
            observer.on_begun()  # as far as a client knows
        result = await self._client.call_tool(
            name, dict(arguments), progress_callback=note if self._wants_progress else None
        )
        if result.is_error:
            raise error_of(result)
        if result.structured_content is not None:
            return result.structured_content
        return "".join(
            block.text for block in result.content if isinstance(block, types.TextContent)
        )


def error_of(result: types.CallToolResult) -> CallError:
    """Return the exception that an error result describes."""
    meta = result.meta or {}
    return from_json(meta[ERROR_META_KEY], meta[FAILED_META_KEY])
