"""Tools' streams as resources of MCP: listed, read, and subscribed to."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic_core import to_json

from opentabs_py.errors import CallError
from opentabs_py.served import StreamSource
from opentabs_py.server.connections import Connections

_SCHEME: Final = "stream"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks for a stream."""

    owner: str | None


class StreamResources:
    """The handlers of `resources/list` and `resources/read`."""

    def __init__(self, streams: StreamSource) -> None:
        self._streams = streams

    def handlers(self) -> dict[str, Any]:
        """Return them by the names that an MCP server takes them by."""
        return {"on_list_resources": self.list, "on_read_resource": self.read}

    async def list(
        self, ctx: ServerRequestContext[Connections], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Give the streams of the client's session."""
        reader = Reader(ctx.lifespan_context.owner(ctx))
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{_SCHEME}://{stream.id}",
                    name=stream.name,
                    description=f"Updates of {stream.name}; ?after=N leaves out the first N.",
                    mime_type="application/json",
                )
                for stream in self._streams.of(reader)
            ]
        )

    async def read(
        self, ctx: ServerRequestContext[Connections], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Give what is kept of a stream."""
        parts = urlsplit(params.uri)
        after = parse_qs(parts.query).get("after", ["0"])[-1]
        reader = Reader(ctx.lifespan_context.owner(ctx))
        if parts.scheme != _SCHEME or not (after.isascii() and after.isdecimal()):
            message = f"{params.uri} is no address of a stream: stream://ID?after=N."
            raise MCPError(types.INVALID_PARAMS, message)
        try:
            value: dict[str, Any] = self._streams.read(parts.netloc, int(after[:15]), reader)
        except CallError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        text = to_json(value).decode()
        content = types.TextResourceContents(
            uri=params.uri, mime_type="application/json", text=text
        )
        return types.ReadResourceResult(contents=[content])
