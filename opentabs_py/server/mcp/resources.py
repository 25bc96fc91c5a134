"""Serve tools' streams, and results that were cut, as MCP resources: list, read, subscribe."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic_core import to_json

from opentabs_py.calling.streams import STREAM_URI, StreamSource, split_uri, stream_address
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import shorten
from opentabs_py.errors import CallError
from opentabs_py.server.mcp.connections import ClientConnections
from opentabs_py.server.mcp.long_results import RESULT_ADDRESS, LongResults
from opentabs_py.server.mcp.tool_list import unknown_cursor

_LONGEST_URI: Final = 300  # characters; a longer one is not ours, and is shortened in the error
_NOT_FOUND_BEFORE_2026: Final = -32002  # MCP 2025-11-25, Resources; SEP-2164 has changed it


@dataclass(frozen=True, slots=True)
class ResourceClient:
    """The client that requests a stream."""

    session_key: SessionKey | None


class Resources:
    """The handlers for resource requests.

    Args:
        streams: The streams; None if no tool ever has any.
        results: The results that were cut; None if none ever is.
    """

    def __init__(self, streams: StreamSource | None, results: LongResults | None) -> None:
        self._streams = streams
        self._results = results

    def handlers(self) -> dict[str, Any]:
        """Return the handlers, by the parameter names of the MCP server."""
        handlers: dict[str, Any] = {}
        if self._streams is not None or self._results is not None:
            handlers |= {
                "on_list_resources": self.list,
                "on_list_resource_templates": self.list_templates,
                "on_read_resource": self.read,
            }
        if self._streams is not None:  # a result does not change
            handlers |= {
                "on_subscribe_resource": self.subscribe,
                "on_unsubscribe_resource": self.unsubscribe,
            }
        return handlers

    async def list(
        self,
        ctx: ServerRequestContext[ClientConnections],
        params: types.PaginatedRequestParams | None,
    ) -> types.ListResourcesResult:
        """Return the streams and results of the client's session, on one page.

        Raises:
            MCPError: The request has a cursor, but there is only one page.
        """
        _refuse_cursor(params)
        session_key = ctx.lifespan_context.session_key(ctx)
        streams = () if self._streams is None else self._streams.of(ResourceClient(session_key))
        results = () if self._results is None else self._results.of(session_key)
        resources = [
            types.Resource(
                uri=stream.uri,
                name=stream.name,
                description=f"Updates of {stream.name}; ?after=N skips the first N.",
                mime_type="application/json",
            )
            for stream in streams
        ]
        resources += [
            types.Resource(
                uri=result.uri,
                name=result.tool,
                description=f"The whole result of a call of {result.tool}.",
                mime_type=result.mime_type,
                size=len(result.text),
            )
            for result in results
        ]
        return types.ListResourcesResult(resources=resources)

    async def list_templates(
        self,
        _ctx: ServerRequestContext[ClientConnections],
        params: types.PaginatedRequestParams | None,
    ) -> types.ListResourceTemplatesResult:
        """Return the URI templates, for clients that know an id.

        Raises:
            MCPError: The request has a cursor, but there is only one page.
        """
        _refuse_cursor(params)
        templates: list[types.ResourceTemplate] = []
        if self._streams is not None:
            stream = types.ResourceTemplate(
                uri_template=f"{STREAM_URI}{{id}}{{?after}}",
                name="stream",
                description="Updates of a tool's stream; `after` is how many to skip.",
                mime_type="application/json",
            )
            templates.append(stream)
        if self._results is not None:
            result = types.ResourceTemplate(
                uri_template=f"{RESULT_ADDRESS}{{id}}",
                name="result",
                description="A whole result, of which a cut version was returned.",
            )
            templates.append(result)
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read(
        self, ctx: ServerRequestContext[ClientConnections], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Return the retained part of a stream, or a result.

        Raises:
            MCPError: There is no such stream or result, or not for this client.
        """
        uri = shorten(params.uri, _LONGEST_URI)
        if self._results is not None and uri.startswith(RESULT_ADDRESS):
            try:
                result = self._results.find(uri, ctx.lifespan_context.session_key(ctx))
            except LookupError as error:
                raise _not_found(ctx, uri, str(error)) from None
            whole = types.TextResourceContents(
                uri=uri, mime_type=result.mime_type, text=result.text.decode()
            )
            return types.ReadResourceResult(contents=[whole])
        text = to_json(self._find(ctx, uri)).decode()
        content = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[content])

    async def subscribe(
        self, ctx: ServerRequestContext[ClientConnections], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Notify a client of the initialize era of each change to a stream.

        Raises:
            MCPError: There is no such stream, or not for this client.
        """
        self._find(ctx, params.uri)
        ctx.lifespan_context.of(ctx).subscribed.add(stream_address(params.uri))
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: ServerRequestContext[ClientConnections], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Stop notifying a client of a stream's changes."""
        ctx.lifespan_context.of(ctx).subscribed.discard(stream_address(params.uri))
        return types.EmptyResult()

    def _find(self, ctx: ServerRequestContext[ClientConnections], uri: str) -> dict[str, Any]:
        uri = shorten(uri, _LONGEST_URI)
        parts = split_uri(uri)
        after = parse_qs(parts.query).get("after", ["0"])[-1]
        reader = ResourceClient(ctx.lifespan_context.session_key(ctx))
        if self._streams is None:
            raise _not_found(ctx, uri, f"{uri} is not a result URI ({RESULT_ADDRESS}ID).")
        if f"{parts.scheme}://" != STREAM_URI or not (after.isascii() and after.isdecimal()):
            raise _not_found(ctx, uri, f"{uri} is not a stream URI (stream://ID?after=N).")
        try:
            return self._streams.read(parts.netloc, int(after[:15]), reader)
        except CallError as error:
            raise _not_found(ctx, uri, str(error)) from None


def _refuse_cursor(params: types.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise unknown_cursor(params.cursor)


def _not_found(ctx: ServerRequestContext[ClientConnections], uri: str, why: str) -> MCPError:
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(types.INVALID_PARAMS if modern else _NOT_FOUND_BEFORE_2026, why, {"uri": uri})
