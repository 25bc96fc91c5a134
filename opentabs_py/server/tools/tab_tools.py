"""`tabs_list`, `tabs_open` and `tabs_close`: their descriptions and arguments.

A subclass does it: in the browsers of this server, or in the workers of a fleet.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import Any, Final

from opentabs_py.browser.urls import web_address
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import OURSELVES, TABS_CLOSE, TABS_LIST, TABS_OPEN
from opentabs_py.core.tabs.listing import SCHEMA, TAB

LONGEST_URL: Final = 8192
_LONGEST_INPUT: Final = 64 * 1024  # characters of JSON

LIST: Final = Listing(
    name=TABS_LIST,
    owner=OURSELVES,
    title="List the tabs",
    description="List the browser tabs that tools can use: the `tabId` of each, its title and URL, "
    "and the plugins whose tools work there. By default, a plugin's tools use the first of the "
    "plugin's tabs in the list. With several browsers, `browser` is the name of the tab's browser. "
    "Tabs that other clients opened for themselves are not listed.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    output_schema=SCHEMA,
    annotations={"readOnlyHint": True, "openWorldHint": False},
    summary="List the browser tabs that tools can use",
)

OPEN: Final = Listing(
    name=TABS_OPEN,
    owner=OURSELVES,
    title="Open a tab",
    description="Open a page in a tab of your own, in the background. From then on, your calls of "
    "the plugins that work there use this tab, and other clients' calls do not. Returns the tab "
    f"as {TABS_LIST} does, when it has loaded. Close it with {TABS_CLOSE} when you are done.",
    input_schema={
        "type": "object",
        "properties": {
            "url": {
                "type": "string",
                "maxLength": LONGEST_URL,
                "description": "An http or https URL; without a scheme, https.",
            },
            "browser": {
                "type": "string",
                "description": "The name of the browser, if there are several. Default: the one "
                "that you used last.",
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    },
    output_schema=TAB,
    annotations={
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    },
    summary="Open a page in a tab of your own",
)

CLOSE: Final = Listing(
    name=TABS_CLOSE,
    owner=OURSELVES,
    title="Close a tab",
    description=f"Close a tab that you opened with {TABS_OPEN}. No other tab can be closed.",
    input_schema={
        "type": "object",
        "properties": {"tabId": {"type": "integer", "description": f"From {TABS_OPEN}."}},
        "required": ["tabId"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {"closed": {"type": "integer", "description": "The tabId."}},
        "required": ["closed"],
    },
    annotations={
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": False,
    },
    summary="Close a tab that you opened",
)


class _TabTool(ABC):
    listing: Listing
    limits: Limits | None = None

    @cached_property
    def _arguments(self) -> ArgumentReader:
        schema = self.listing.input_schema
        return ArgumentReader(self.listing.name, schema, limit=_LONGEST_INPUT)


class TabsList(_TabTool):
    """`tabs_list`."""

    listing = LIST

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what lists the open tabs; see `Tool.prepare`."""
        self._arguments.read(call.arguments)
        return partial(self.list_tabs, call)

    @abstractmethod
    async def list_tabs(self, call: ToolCall) -> Any:
        """Return the tabs that the call's client may use."""


class TabsOpen(_TabTool):
    """`tabs_open`."""

    listing = OPEN

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what opens a tab; see `Tool.prepare`."""
        given = self._arguments.read(call.arguments)
        try:
            url = web_address(str(given["url"]))
        except ValueError as error:
            raise failures.invalid_arguments(TABS_OPEN, [("url", str(error))]) from None
        browser = given.get("browser")
        return partial(self._open, call, url, None if browser is None else str(browser))

    async def _open(self, call: ToolCall, url: str, browser: str | None) -> Any:
        tab = await self.open_tab(call, url, browser)
        if call.recorder is not None:
            call.recorder.record_tab(tab["tabId"], tab["url"])
        return tab

    @abstractmethod
    async def open_tab(self, call: ToolCall, url: str, browser: str | None) -> Any:
        """Open a tab, in the named browser if there is a name, and return it."""


class TabsClose(_TabTool):
    """`tabs_close`."""

    listing = CLOSE

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what closes the tab; see `Tool.prepare`."""
        given: Any = self._arguments.read(call.arguments)
        # 7.0 is an integer in JSON Schema
        return partial(self.close_tab, call, int(given["tabId"]))

    @abstractmethod
    async def close_tab(self, call: ToolCall, tab: int) -> Any:
        """Close a tab that the call's client opened, and return which."""
