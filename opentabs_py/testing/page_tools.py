"""The tools that a page registers itself, in tests."""

from collections.abc import Mapping
from typing import Any

from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.testing.arguments import merged
from opentabs_py.testing.call import Call, Caller

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these


class SyncPageTool:
    """A tool that a page registered itself; its calls run in that page.

    Attributes:
        name: The tool's name in the page.
        mcp_name: The tool's name for MCP clients.
    """

    def __init__(self, tool: PageTool, tab_id: int, caller: Caller) -> None:
        self.name = tool.tool.registered.name
        self.mcp_name = tool.listing.name
        self._caller = caller
        self._tool = tool
        self._tab_id = tab_id

    def __repr__(self) -> str:
        return f"<SyncPageTool {self.name}>"

    @property
    def title(self) -> str:
        """The tool's title, as the page wrote it; empty if it has none."""
        return self._tool.tool.registered.title

    @property
    def description(self) -> str:
        """The tool's description, as the page wrote it."""
        return self._tool.tool.registered.description

    @property
    def input_schema(self) -> Mapping[str, Any]:
        """The JSON Schema of its arguments, as the page wrote it."""
        return self._tool.tool.registered.input_schema

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The tool's hints, as MCP clients see them."""
        return self._tool.tool.annotations

    def call(self, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """Call it, wait until it has ended, and return its value; see `SyncOpenTabs.call`."""
        return self._caller.call(self.mcp_name, self._given(arguments, more))

    def start(self, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
        """Start a call, and return it once its tool has started; see `SyncOpenTabs.start`."""
        return self._caller.start(self.mcp_name, self._given(arguments, more))

    def _given(self, arguments: Mapping[str, Any] | None, more: Mapping[str, Any]) -> Any:
        return {**merged(arguments, more), TAB_ID: self._tab_id}
