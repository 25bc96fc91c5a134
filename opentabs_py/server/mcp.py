"""The MCP server on top of the registry: listing, calling, progress, errors."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from pydantic_core import to_json

from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.tool import CallClient, Output, StreamSource, Tool
from opentabs_py.core import failures
from opentabs_py.core.error_kinds import side_of
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import OURSELVES
from opentabs_py.core.progress import Pace
from opentabs_py.errors import BrokenResultError, CallError
from opentabs_py.server import gateway
from opentabs_py.server.answers import Prepared, TextInParts, find_slot
from opentabs_py.server.changes import ChangeNotifier
from opentabs_py.server.clients import noticing_timeouts
from opentabs_py.server.connections import ClientConnections, lifespan
from opentabs_py.server.elicitation import ConsentAskedError, Retries, find_asker
from opentabs_py.server.ending import Ending
from opentabs_py.server.exposure import Listed
from opentabs_py.server.long_results import LongResults
from opentabs_py.server.progress_sender import ProgressSender
from opentabs_py.server.registry import ToolRegistry
from opentabs_py.server.resources import Resources
from opentabs_py.server.tool_list import Page, ToolList
from opentabs_py.server.workarounds import declare_changes, progress_token

logger = logging.getLogger(__name__)

ERROR_META_KEY = "opentabs/error"
FAILED_META_KEY = "opentabs/failed"
INSTRUCTIONS = """\
These tools run inside the user's own browser tabs, with the user's session. A tool needs a \
tab of its site to be open and signed in; an error says so when there is none. tabs_list \
lists the tabs, and the other tools take an optional tabId to choose between several. tabs_open \
opens a tab of your own, which other agents do not use."""


PYTHON_INSTRUCTIONS = "These tools run beside the server; their descriptions say what they do."
READY_INSTRUCTIONS = """\
Only the tools that work in an open tab are listed; the list changes as tabs open and close."""
MIXED_INSTRUCTIONS = "Tools whose schema has no tabId run beside the server, and need no tab."


def create_mcp_server(
    registry: ToolRegistry,
    *,
    version: str,
    as_gateway: bool = False,
    pace: Pace | None = None,
    streams: StreamSource | None = None,
    late_progress: bool = True,
    ending: Ending | None = None,
    output_schemas: bool = True,
    listed: Listed | None = None,
    long_results: LongResults | None = None,
    on_client_gone: Callable[[str], None] = lambda _client: None,
    now: Callable[[], float] = anyio.current_time,
) -> Server[ClientConnections]:
    """Build the MCP server that serves a registry, for any transport.

    Args:
        registry: The tools to serve.
        version: The server's version.
        as_gateway: Serve two tools instead: one finds the registry's tools, one calls them.
        pace: How often clients receive progress.
        streams: The streams of Python tools; None if no tool has any.
        late_progress: Keep sending streams to clients of the initialize era after the response.
        ending: Answers the running calls when the server stops.
        output_schemas: Include the schemas of results in `tools/list`.
        listed: The tools in `tools/list`; by default, all. The others can be called too.
        long_results: Cuts and keeps long results; None to send them as they are.
        on_client_gone: Called with the session of each client that goes, perhaps twice; must not
            block or raise.
        now: The clock, in seconds, for noticing clients' timeouts.
    """
    tools = ToolList(listed or registry, output_schemas=output_schemas and long_results is None)
    pace = pace or Pace()
    ending = ending or Ending()
    changes = ChangeNotifier(
        None if as_gateway else (listed or registry).subscribe, streams, ending
    )

    async def list_tools(
        ctx: ServerRequestContext[ClientConnections], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        if as_gateway:
            return types.ListToolsResult(tools=gateway.TOOLS)
        return _list_tools(tools.page(params), find_slot(ctx.request))

    async def call_tool(
        ctx: ServerRequestContext[ClientConnections], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, arguments = params.name, params.arguments or {}
        if as_gateway:
            try:
                asked = gateway.resolve(registry, name, arguments)
            except CallError as error:
                return to_error_result(error)
            if isinstance(asked, gateway.FoundTools):
                return to_result(asked.value)
            name, arguments = asked.name, asked.arguments
        connection = ctx.lifespan_context.of(ctx)
        patience = noticing_timeouts(ctx, name, enough=registry.limits.client_timeout, now=now)
        with connection.hold_token(progress_token(ctx)), patience:
            tool = registry.get(name)
            if ending.has_begun:
                return to_error_result(failures.server_stopped(name, has_begun=False))
            reporter = ProgressSender(
                ctx,
                connection=connection,
                logger=None if tool is None else tool.listing.owner,
                pace=pace,
                late=late_progress,
                find_asker=partial(find_asker, ctx, params, connection, retries),
            )
            with anyio.CancelScope() as scope, ending.calls(scope.cancel):
                slot = find_slot(ctx.request)
                return await _call_tool(
                    registry, tool or name, arguments, reporter, slot, long_results
                )
            return to_error_result(failures.server_stopped(name, has_begun=True))

    async def keep_client(
        ctx: ServerRequestContext[ClientConnections], _params: types.NotificationParams
    ) -> None:
        # The connection cancels this when it ends. Each has its own, so a slow client delays
        # only itself.
        connection = ctx.lifespan_context.of(ctx)
        if not connection.is_kept:
            connection.is_kept = True
            try:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(connection.late.run)
                    await changes.notify(ctx.session, connection.subscribed)
            finally:
                client = ctx.lifespan_context.owner(ctx)
                if client is not None:
                    ctx.lifespan_context.on_gone(client)

    async def set_level(
        ctx: ServerRequestContext[ClientConnections], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        ctx.lifespan_context.of(ctx).least = params.level
        return types.EmptyResult()

    server = _Server(
        "opentabs",
        version=version,
        title="OpenTabs",
        instructions=gateway.INSTRUCTIONS if as_gateway else _instructions(registry, listed),
        lifespan=lifespan(on_client_gone),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        # Without it the SDK rebuilds the whole list for each call with arguments over HTTP.
        get_tool_input_schema=gateway.input_schema if as_gateway else registry.input_schema,
        **Resources(streams, long_results).handlers(),
        on_subscriptions_listen=changes.listen,
    )
    retries = Retries(server)
    server.tools_change = not as_gateway
    server.has_streams = streams is not None
    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, keep_client
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


def _list_tools(page: Page, slot: Prepared | None) -> types.ListToolsResult:
    if slot is None:
        return page.to_result()
    slot.fill(b'"tools":[]', TextInParts(b'"tools":' + page.to_json()))
    return types.ListToolsResult(tools=[], next_cursor=page.next_cursor)


class _Server(Server[ClientConnections]):
    """A server that declares the change notifications it sends, in every era.

    Attributes:
        tools_change: Whether its tool list may change.
        has_streams: Whether any tool has streams.
    """

    tools_change = True
    has_streams = False

    def get_capabilities(self, *args: Any, **options: Any) -> types.ServerCapabilities:
        capabilities = super().get_capabilities(*args, **options)
        declare_changes(capabilities, tools_change=self.tools_change, has_streams=self.has_streams)
        return capabilities


def _instructions(registry: ToolRegistry, listed: Listed | None) -> str:
    tools = [tool for tool in registry.tools if tool.listing.owner != OURSELVES]
    of_python = [tool for tool in tools if not tool.listing.needs_tab]
    if of_python and len(of_python) == len(tools):
        return PYTHON_INSTRUCTIONS
    parts = [INSTRUCTIONS]
    if listed is not None:
        parts.append(READY_INSTRUCTIONS)
    if of_python:
        parts.append(MIXED_INSTRUCTIONS)
    return " ".join(parts)


async def _call_tool(
    registry: ToolRegistry,
    tool: Tool | str,
    arguments: dict[str, Any],
    reporter: ProgressSender,
    slot: Prepared | None,
    long_results: LongResults | None,
) -> types.CallToolResult | types.InputRequiredResult:
    result: types.CallToolResult | types.InputRequiredResult | None = None
    async with anyio.create_task_group() as tasks:
        reporter.start(tasks)
        try:
            result = await run_tool(
                registry,
                tool,
                arguments,
                observers=[reporter],
                client=reporter,
                slot=slot,
                long_results=long_results,
            )
        except ConsentAskedError as error:
            result = error.result
        await reporter.finish()
        tasks.cancel_scope.cancel()
    reporter.hand_over()
    assert result is not None  # anything that ends the block early also ends this call
    return result


async def run_tool(
    registry: ToolRegistry,
    tool: Tool | str,
    arguments: Mapping[str, Any],
    *,
    limits: Limits | None = None,
    observers: Sequence[CallObserver] = (),
    client: CallClient | None = None,
    client_name: str | None = None,
    call_id: str | None = None,
    allowed_by: str | None = None,
    slot: Prepared | None = None,
    long_results: LongResults | None = None,
) -> types.CallToolResult:
    """Call a tool and return its result, whether it succeeds or fails; see `ToolRegistry.call`.

    With a slot, the value is put there, and the result is empty. With `long_results`, a long value
    is cut.

    Raises:
        ConsentAskedError: The client has to repeat the call with the answer of its user.
    """
    name = tool if isinstance(tool, str) else tool.listing.name
    owner = None if client is None else client.owner
    try:
        value = await registry.call(
            tool,
            arguments,
            limits=limits,
            observers=observers,
            client=client,
            client_name=client_name,
            call_id=call_id,
            allowed_by=allowed_by,
        )
        if isinstance(value, Output):
            result = to_result(value)
            return long_results.shorten_content(name, result, owner) if long_results else result
        if long_results and (cut := long_results.shorten(name, value, owner)) is not None:
            return cut
        return to_result(value) if slot is None else _prepare_result(value, slot)
    except ConsentAskedError:
        raise  # the client is to repeat the call
    except CallError as error:
        result = to_failed_result(error, with_stack=registry.debug)
        return long_results.shorten_content(name, result, owner) if long_results else result
    except Exception:
        # The boundary to the client: internal details stay in our log.
        logger.exception("The call of %s failed inside the server", name)
        return to_error_result(failures.internal(name))


def to_result(value: Any) -> types.CallToolResult:
    """Return a tool's value as an MCP result: as text, and also as structure if it is an object."""
    if isinstance(value, Output):
        return types.CallToolResult(
            content=list(value.content), structured_content=value.structured, _meta=value.meta
        )
    text = value if isinstance(value, str) else to_json(value).decode()
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=value if isinstance(value, dict) else None,
    )


def _prepare_result(value: Any, slot: Prepared) -> types.CallToolResult:
    """Put what `to_result` returns into a slot, in a third of the memory."""
    content = to_json(value)
    begin = TextInParts(b'"content":[{"type":"text","text":')
    if isinstance(value, str):
        texts = [begin, TextInParts(content), TextInParts(b"}]")]
    elif isinstance(value, dict):
        structured = [TextInParts(b'}],"structuredContent":'), TextInParts(content)]
        texts = [begin, TextInParts(content, quoted=True), *structured]
    else:
        texts = [begin, TextInParts(content, quoted=True), TextInParts(b"}]")]
    slot.fill(b'"content":[]', *texts)
    return types.CallToolResult(content=[])


def to_failed_result(error: CallError, *, with_stack: bool = False) -> types.CallToolResult:
    """Return an error result, followed by whatever the tool returned despite the error."""
    result = to_error_result(error)
    if with_stack and error.detail.stack is not None:
        result.content.append(types.TextContent(text=error.detail.stack))
    if isinstance(error, BrokenResultError):
        result.content += to_result(error.value).content
    elif error.partial is not None:
        result.content += to_result(error.partial).content
    return result


def to_error_result(error: CallError) -> types.CallToolResult:
    """Return an error as agents read it: one line, then the same fields as JSON.

    Programs find the fields under `_meta["opentabs/error"]`, and which side failed under
    `_meta["opentabs/failed"]`: the `tool`, the `caller`, or the `chain`.
    """
    detail = error.detail
    fields = detail.to_json()
    marks = f"code={detail.code}"
    if detail.category is not None:
        marks += f" category={detail.category}"
    marks += f" retryable={'true' if detail.retryable else 'false'}"
    if detail.retry_after_ms is not None:
        marks += f" retryAfterMs={detail.retry_after_ms:g}"
    block = json.dumps(
        {name: value for name, value in fields.items() if value is not None},
        indent=2,
        ensure_ascii=False,
    )
    return types.CallToolResult(
        content=[
            types.TextContent(text=f"[ERROR {marks}] {detail.message}\n```json\n{block}\n```")
        ],
        is_error=True,
        _meta={ERROR_META_KEY: fields, FAILED_META_KEY: side_of(error)},
    )
