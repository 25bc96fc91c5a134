"""The MCP server: listing tools, calling them, and sending their progress."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from opentabs_py.calling.call import CallOrigin
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.streams import StreamSource
from opentabs_py.calling.tool import ListedTools
from opentabs_py.core.plugin_names import HANDS, OURSELVES
from opentabs_py.core.progress import Pace
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import CallError
from opentabs_py.server.mcp import gateway
from opentabs_py.server.mcp.answers import Prepared, TextInParts, find_slot
from opentabs_py.server.mcp.changes import ChangeNotifier
from opentabs_py.server.mcp.clients import noticing_timeouts
from opentabs_py.server.mcp.connections import ClientConnection, ClientConnections, lifespan
from opentabs_py.server.mcp.elicitation import ConsentAskedError, Retries, find_asker
from opentabs_py.server.mcp.long_results import LongResults
from opentabs_py.server.mcp.progress_sender import ProgressSender
from opentabs_py.server.mcp.resources import Resources
from opentabs_py.server.mcp.results import result_of, to_error_result, to_result
from opentabs_py.server.mcp.tool_list import Page, ToolList
from opentabs_py.server.mcp.workarounds import declare_changes, progress_token
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.tool_calls import ToolCalls
from opentabs_py.version import __version__

_Context = ServerRequestContext[ClientConnections]
_CallResult = types.CallToolResult | types.InputRequiredResult

INSTRUCTIONS = """\
These tools run inside the user's own browser tabs, with the user's session. A tool needs a \
tab of its site to be open and signed in; an error says so when there is none. tabs_list \
lists the tabs; pass a tabId to a tool that takes one to choose between several. tabs_open \
opens a tab of your own, which other agents do not use."""


PYTHON_INSTRUCTIONS = "These tools run in the server, not in a browser tab."
READY_INSTRUCTIONS = """\
Only the tools that work in an open tab are listed; the list changes as tabs open and close."""
MIXED_INSTRUCTIONS = "Tools without a tabId run in the server and need no tab."


def create_mcp_server(
    calls: ToolCalls,
    *,
    as_gateway: bool = False,
    pace: Pace | None = None,
    streams: StreamSource | None = None,
    late_progress: bool = True,
    on_stop: Listeners[[]] | None = None,
    output_schemas: bool = True,
    listed: ListedTools | None = None,
    long_results: LongResults | None = None,
    on_client_gone: Callable[[SessionKey], None] = lambda _client: None,
    now: Callable[[], float] = anyio.current_time,
) -> Server[ClientConnections]:
    """Build the MCP server that serves the tools of a registry, for any transport.

    Args:
        calls: The calls of the tools to serve.
        as_gateway: Serve two tools instead: one finds the registry's tools, one calls them.
        pace: How often clients receive progress.
        streams: The streams of Python tools; None if no tool ever has any.
        late_progress: Keep sending streams to clients of the initialize era after the response.
        on_stop: Notified when the server stops, which ends the clients' subscriptions.
        output_schemas: Include the schemas of results in `tools/list`.
        listed: The tools in `tools/list`; by default, all. The others can be called too.
        long_results: Cuts and keeps long results; None to send them as they are.
        on_client_gone: Called with the session of each client that goes; must not block or raise.
        now: The clock, in seconds, for noticing clients' timeouts.
    """
    registry = calls.registry
    shown = listed or registry
    changes = ChangeNotifier(None if as_gateway else shown.subscribe, streams, on_stop)
    handlers = _Handlers(
        calls,
        tools=ToolList(shown, output_schemas=output_schemas and long_results is None),
        as_gateway=as_gateway,
        pace=pace or Pace(),
        late_progress=late_progress,
        changes=changes,
        long_results=long_results,
        now=now,
    )
    server = _Server(
        "opentabs",
        version=__version__,
        title="OpenTabs",
        lifespan=lifespan(on_client_gone),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        # Without it the SDK rebuilds the whole list for each call with arguments over HTTP.
        get_tool_input_schema=gateway.input_schema if as_gateway else registry.input_schema,
        **Resources(streams, long_results).handlers(),
        on_subscriptions_listen=changes.listen,
    )

    def instruct() -> None:
        follows_tabs = listed is not None
        server.instructions = _instructions(
            registry, as_gateway=as_gateway, follows_tabs=follows_tabs
        )

    instruct()
    registry.subscribe(instruct)  # the SDK reads them whenever a client connects
    handlers.retries = Retries(server)
    server.tools_change = not as_gateway
    server.streams = streams
    server.keeps_results = long_results is not None
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, handlers.keep_client
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_level)
    return server


@dataclass(slots=True)
class _Handlers:
    """Answers the requests of clients; the fields are arguments of `create_mcp_server`."""

    calls: ToolCalls
    _: KW_ONLY
    tools: ToolList
    as_gateway: bool
    pace: Pace
    late_progress: bool
    changes: ChangeNotifier
    long_results: LongResults | None
    now: Callable[[], float]
    retries: Retries = field(init=False)  # they need the server, which needs the handlers

    async def list_tools(
        self, ctx: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if self.as_gateway:
            return types.ListToolsResult(tools=gateway.TOOLS)
        return _list_tools(self.tools.page(params), find_slot(ctx.request))

    async def call_tool(self, ctx: _Context, params: types.CallToolRequestParams) -> _CallResult:
        name, arguments = params.name, params.arguments or {}
        if self.as_gateway:
            try:
                asked = gateway.resolve(self.calls.registry, name, arguments)
            except CallError as error:
                return to_error_result(error)
            if isinstance(asked, gateway.FoundTools):
                return to_result(asked.value)
            name, arguments = asked.name, asked.arguments
        connection = ctx.lifespan_context.of(ctx)
        enough = self.calls.limits.client_timeout
        patience = noticing_timeouts(ctx, name, enough=enough, now=self.now)
        with connection.hold_token(progress_token(ctx)), patience:
            return await self._call(ctx, params, connection, name, arguments)

    async def _call(
        self,
        ctx: _Context,
        params: types.CallToolRequestParams,
        connection: ClientConnection,
        name: str,
        arguments: dict[str, Any],
    ) -> _CallResult:
        """Call a tool, and send its progress meanwhile."""
        tool = self.calls.registry.get(name)
        reporter = ProgressSender(
            ctx,
            connection=connection,
            logger=None if tool is None else tool.listing.owner,
            pace=self.pace,
            late=self.late_progress,
            find_asker=partial(find_asker, ctx, params, connection, self.retries),
            uses_gateway=self.as_gateway,
        )
        result: _CallResult | None = None
        async with anyio.create_task_group() as tasks:
            reporter.start(tasks)
            try:
                result = await result_of(
                    self.calls.call(
                        tool or name,
                        arguments,
                        observers=[reporter],
                        origin=CallOrigin.of(reporter),
                    ),
                    name if tool is None else tool.listing.name,
                    with_stack=self.calls.debug,
                    slot=find_slot(ctx.request),
                    long_results=self.long_results,
                    session_key=reporter.session_key,
                )
            except ConsentAskedError as error:
                result = error.result
            await reporter.finish()
            tasks.cancel_scope.cancel()
        reporter.hand_over()
        assert result is not None  # anything that ends the block early also ends this call
        return result

    async def keep_client(self, ctx: _Context, _params: types.NotificationParams) -> None:
        # The connection cancels this when it ends. Each has its own, so a slow client delays
        # only itself.
        connection = ctx.lifespan_context.of(ctx)
        if not connection.is_kept:
            connection.is_kept = True
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.late.run)
                await self.changes.notify(ctx.session, connection.subscribed)

    async def set_level(
        self, ctx: _Context, params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        ctx.lifespan_context.of(ctx).log_level = params.level
        return types.EmptyResult()


def _list_tools(page: Page, slot: Prepared | None) -> types.ListToolsResult:
    if slot is None:
        return page.to_result()
    slot.fill(b'"tools":[]', TextInParts(b'"tools":' + page.to_json()))
    return types.ListToolsResult(tools=[], next_cursor=page.next_cursor)


class _Server(Server[ClientConnections]):
    """A server that declares the change notifications it sends, in every era.

    Attributes:
        tools_change: Whether its tool list may change.
        streams: The streams of tools; None if no tool ever has any.
        keeps_results: Whether results that were cut are resources.
    """

    tools_change = True
    streams: StreamSource | None = None
    keeps_results = False

    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(*args, **options)
        has_streams = self.streams is not None and self.streams.is_served
        if not (has_streams or self.keeps_results):
            capabilities.resources = None  # what handles requests for them waits for a module
        declare_changes(capabilities, tools_change=self.tools_change, has_streams=has_streams)
        return capabilities


def _instructions(registry: ToolRegistry, *, as_gateway: bool, follows_tabs: bool) -> str:
    tools = [each.listing for each in registry.tools if each.listing.owner != OURSELVES]
    of_python = [each for each in tools if not each.needs_tab and each.owner != HANDS]
    parts = [gateway.INSTRUCTIONS] if as_gateway else []
    if of_python and len(of_python) == len(tools):
        return " ".join([*parts, PYTHON_INSTRUCTIONS])
    parts.append(INSTRUCTIONS)
    if follows_tabs and not as_gateway:
        parts.append(READY_INSTRUCTIONS)
    if of_python:
        parts.append(MIXED_INSTRUCTIONS)
    return " ".join(parts)
