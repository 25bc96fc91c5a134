"""The MCP server on top of the toolbox: listing, calling, progress, errors."""

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
from mcp import types
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler, ServerEvent, ToolsListChanged
from pydantic_core import to_json

from opentabs_py.core import failures
from opentabs_py.errors import CallError, CallRefusedError, ErrorDetail, ToolFailedError
from opentabs_py.server.reporter import CallReporter
from opentabs_py.server.toolbox import PageTool, Toolbox

logger = logging.getLogger(__name__)

ERROR_META_KEY = "opentabs/error"
FAILED_META_KEY = "opentabs/failed"
INSTRUCTIONS = """\
These tools run inside the user's own browser tabs, with the user's session. A tool needs a \
tab of its site to be open and signed in; an error says so when there is none. Every tool \
takes an optional tabId to choose between several tabs."""


def create_mcp_server(toolbox: Toolbox, *, version: str) -> Server[Any]:
    """Build the MCP server that serves a toolbox, for any transport."""

    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_describe(tool) for tool in toolbox.tools])

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        client = clients.get(id(ctx.session.client_params), NOBODY)
        plugin = toolbox.plugin_of(params.name)
        reporter = CallReporter(ctx, logger=plugin, least=client.least)
        return await _call_tool(toolbox, params, reporter)

    server = _Server(
        "opentabs",
        version=version,
        title="OpenTabs",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_subscriptions_listen=ListenHandler(_ListChanges(toolbox)),
    )
    clients: dict[int, _Client] = {}

    async def keep_client(
        ctx: ServerRequestContext[Any], _params: types.NotificationParams
    ) -> None:
        # The connection cancels this when it ends. Each has its own, so a slow client waits alone.
        connection = ctx.session.client_params  # one object as long as the connection lasts
        if id(connection) not in clients:
            clients[id(connection)] = _Client(connection)
            try:
                await _tell_changes(toolbox, ctx.session)
            finally:
                del clients[id(connection)]

    async def set_level(
        ctx: ServerRequestContext[Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        client = clients.get(id(ctx.session.client_params))
        if client is not None:
            client.least = params.level
        return types.EmptyResult()

    server.add_notification_handler(
        "notifications/initialized", types.NotificationParams, keep_client
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    return server


@dataclass(slots=True)
class _Client:
    """A connected client of the initialize era.

    Attributes:
        connection: Keeps what identifies it from being another's.
        least: The least level of logs that it wants.
    """

    connection: object
    least: types.LoggingLevel = "info"


NOBODY = _Client(None)


class _Server(Server[Any]):
    """A server that says at `initialize`, over HTTP too, that its list of tools can change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changes = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


class _ListChanges:
    """The changes of a toolbox, as `subscriptions/listen` (MCP 2026-07-28) takes them."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    async def publish(self, event: ServerEvent) -> None:
        raise NotImplementedError("the toolbox alone says when it changes")

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        return self._toolbox.subscribe(lambda: listener(ToolsListChanged()))


async def _tell_changes(toolbox: Toolbox, session: ServerSession) -> None:
    """Tell a client of the initialize era of each change, until cancelled.

    Changes that come while one is being told are told together.
    """
    changed = anyio.Event()

    def note() -> None:
        changed.set()

    unsubscribe = toolbox.subscribe(note)
    try:
        while True:
            await changed.wait()
            changed = anyio.Event()
            await session.send_tool_list_changed()
    finally:
        unsubscribe()


def _describe(tool: PageTool) -> types.Tool:
    input_schema, output_schema = tool.listed_schemas
    return types.Tool(
        name=tool.name,
        title=tool.tool.display_name,
        description=tool.tool.description,
        input_schema=input_schema,
        output_schema=output_schema,
    )


async def _call_tool(
    toolbox: Toolbox,
    params: types.CallToolRequestParams,
    reporter: CallReporter,
) -> types.CallToolResult:
    result: types.CallToolResult | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reporter.run)
        result = await _run_tool(toolbox, params, reporter)
        await reporter.finish()
        tasks.cancel_scope.cancel()
    assert result is not None  # what ends the block early ends this call too
    return result


async def _run_tool(
    toolbox: Toolbox, params: types.CallToolRequestParams, reporter: CallReporter
) -> types.CallToolResult:
    try:
        value = await toolbox.call(
            params.name,
            params.arguments or {},
            on_progress=reporter.feed,
            on_log=reporter.feed_logs,
        )
        if toolbox.promises_object(params.name) and not isinstance(value, dict):
            return _to_broken_promise(params.name, value)
        return to_result(value)
    except CallError as error:
        return to_error_result(error)
    except Exception:
        # The boundary to the client: what is not ours to tell stays in our log.
        logger.exception("The call of %s failed inside the server", params.name)
        return to_error_result(failures.internal(params.name))


def to_result(value: Any) -> types.CallToolResult:
    """A tool's value as MCP sends it: as text, and as it is when it is an object."""
    text = value if isinstance(value, str) else to_json(value).decode()
    return types.CallToolResult(
        content=[types.TextContent(text=text)],
        structured_content=value if isinstance(value, dict) else None,
    )


def _to_broken_promise(name: str, value: Any) -> types.CallToolResult:
    """A value that is no object although the schema says so: clients refuse such a result."""
    text = (
        f"{name} ran, and gave {type(value).__name__} where its output schema promises an object. "
        "The value follows; the plugin is to be mended."
    )
    result = to_error_result(ToolFailedError(ErrorDetail("RESULT_BREAKS_SCHEMA", text)))
    result.content += to_result(value).content
    return result


def to_error_result(error: CallError) -> types.CallToolResult:
    """An error as agents read it: one line, then the same fields as JSON.

    Programs find the fields under `_meta["opentabs/error"]`, and under
    `_meta["opentabs/failed"]` who failed: the `tool`, the `caller`, or the `chain`.
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
        _meta={ERROR_META_KEY: fields, FAILED_META_KEY: _who_failed(error)},
    )


def _who_failed(error: CallError) -> str:
    match error:
        case ToolFailedError():
            return "tool"
        case CallRefusedError():
            return "caller"
        case _:
            return "chain"
