"""The answer to `tools/list`: the tools as MCP describes them, serialized once per set of tools."""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp import types
from mcp.shared.exceptions import MCPError
from pydantic_core import from_json, to_json

from opentabs_py.calling.listing import Listing
from opentabs_py.calling.tool import ListedTools, Tool
from opentabs_py.core.text import shorten

PAGE_META_KEY: Final = "opentabs/pageSize"
_CURSOR: Final = re.compile(r"after:(?P<size>[0-9]{0,9}):(?P<name>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the list.

    Attributes:
        tools: Each tool as JSON, in both eras' form.
        next_cursor: The cursor of the next page, if there is one.
    """

    tools: Sequence[bytes]
    next_cursor: str | None

    def to_json(self) -> bytes:
        """Return the tools as a JSON array."""
        return b"[" + b",".join(self.tools) + b"]"

    def to_result(self) -> types.ListToolsResult:
        """Return the page as the SDK sends it."""
        return types.ListToolsResult(
            tools=[types.Tool.model_validate(from_json(tool)) for tool in self.tools],
            next_cursor=self.next_cursor,
        )


class ToolList:
    """The listed tools, sorted by name.

    All are on one page unless the client asks for smaller ones: some clients read only the first.

    Args:
        listed: The tools.
        output_schemas: Whether to include the schemas of results.
    """

    def __init__(self, listed: ListedTools, *, output_schemas: bool = True) -> None:
        self._listed = listed
        self._output_schemas = output_schemas
        self._made_of: Sequence[Tool] | None = None
        self._tools: list[bytes] = []
        self._names: list[str] = []

    def page(self, params: types.PaginatedRequestParams | None) -> Page:
        """Return a page of tools.

        A cursor names the tool before its page, so a list that changes between two pages neither
        repeats nor skips a tool.

        Args:
            params: Its cursor is that of the page. For the first page, `opentabs/pageSize` in its
                `_meta` is the number of tools per page.

        Raises:
            MCPError: The cursor is unknown.
        """
        if self._made_of is not self._listed.tools:
            self._made_of = self._listed.tools
            self._tools = [self._describe(tool.listing) for tool in self._made_of]
            self._names = [tool.listing.name for tool in self._made_of]
        start, size = 0, _asked_size(params)
        if params is not None and params.cursor is not None:
            found = _CURSOR.fullmatch(params.cursor)
            if found is None:
                raise unknown_cursor(params.cursor)
            start = bisect_right(self._names, found["name"])
            size = int(found["size"] or 0)
        end = min(start + size, len(self._tools)) if size else len(self._tools)
        more = end < len(self._tools)
        cursor = f"after:{size}:{self._names[end - 1]}" if more else None
        return Page(self._tools[start:end], cursor)

    def _describe(self, tool: Listing) -> bytes:
        described = tool.describe(output_schema=self._output_schemas)
        if tool.annotations is not None:
            hints = types.ToolAnnotations.model_validate(tool.annotations)
            described["annotations"] = hints.model_dump(by_alias=True, exclude_none=True)
        # Of a worker's schemas, JSON has no NaN, and JavaScript would refuse the whole list.
        return to_json(described, inf_nan_mode="null")


def _asked_size(params: types.PaginatedRequestParams | None) -> int:
    """Return how many tools per page a client asks for; 0 for all."""
    meta: Mapping[str, Any] = (params.meta if params is not None else None) or {}
    size = meta.get(PAGE_META_KEY)
    if isinstance(size, bool) or not isinstance(size, int):
        return 0
    return size if 0 < size < 10**9 else 0


def unknown_cursor(cursor: str) -> MCPError:
    """Return the error for a cursor that was never issued."""
    return MCPError(
        types.INVALID_PARAMS,
        f"The cursor {shorten(cursor)!r} is unknown. Send a nextCursor exactly as received, or "
        "none for the first page.",
    )
