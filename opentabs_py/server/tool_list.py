"""The answer to `tools/list`: the tools as MCP describes them, page by page."""

from bisect import bisect_right
from collections.abc import Sequence

from mcp import types
from mcp.shared.exceptions import MCPError

from opentabs_py.calling.tool import Listing, ServedTool
from opentabs_py.server.registry import ToolRegistry

PAGE_SIZE = 512 * 1024  # characters of JSON; Python's client rejects events of 1 MiB
_CURSOR = "after:"


class Pages:
    """The pages of a registry's tools, sorted by name; built once per set of tools."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._made_of: Sequence[ServedTool] | None = None
        self._tools: list[types.Tool] = []
        self._names: list[str] = []
        self._sizes: list[int] = []

    def page(self, cursor: str | None) -> types.ListToolsResult:
        """Return one page of tools, starting at a cursor, with the next page's cursor.

        A cursor names the tool before its page, so a list that changes between two pages neither
        repeats nor skips a tool.

        Raises:
            MCPError: The cursor is unknown.
        """
        if self._made_of is not self._registry.tools:
            self._made_of = self._registry.tools
            self._tools = [_describe(tool.listing) for tool in self._made_of]
            self._names = [tool.name for tool in self._tools]
            self._sizes = [len(tool.model_dump_json(by_alias=True)) for tool in self._tools]
        start = 0
        if cursor is not None:
            if not cursor.startswith(_CURSOR):
                raise unknown_cursor(cursor)
            start = bisect_right(self._names, cursor.removeprefix(_CURSOR))
        size, end = 0, start
        while end < len(self._tools) and (end == start or size + self._sizes[end] <= PAGE_SIZE):
            size += self._sizes[end]
            end += 1
        more = end < len(self._tools)
        return types.ListToolsResult(
            tools=self._tools[start:end],
            next_cursor=_CURSOR + self._names[end - 1] if more else None,
        )


def unknown_cursor(cursor: str) -> MCPError:
    """Return the error for a cursor that was never issued."""
    return MCPError(
        types.INVALID_PARAMS,
        f"The cursor {cursor!r} is unknown. Send a nextCursor exactly as received, or none for "
        "the first page.",
    )


def _describe(tool: Listing) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        # A root other than an object makes initialize-era clients refuse the whole list.
        output_schema=tool.output_schema if tool.promises_object else None,
        annotations=None
        if tool.annotations is None
        else types.ToolAnnotations.model_validate(tool.annotations),
    )
