"""`tabs_open` and `tabs_close`: the tools with which an agent has tabs of its own."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import anyio

from opentabs_py.bridge.own_tabs import OwnTabs
from opentabs_py.bridge.pages import Pages
from opentabs_py.browser.urls import web_address
from opentabs_py.calling.tool import Listing, ToolCall
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import OURSELVES, TABS_CLOSE, TABS_LIST, TABS_OPEN
from opentabs_py.core.tab_list import TAB, describe_opened, has_reported

LONGEST_URL: Final = 8192
_LONGEST_INPUT: Final = 64 * 1024  # characters of JSON
LOADS_WITHIN: Final = 10.0  # s; a page that takes longer is reported as it is
REDIRECTS_WITHIN: Final = 2.0  # s; in which a page without plugins may lead to one that has some

OPEN: Final = Listing(
    name=TABS_OPEN,
    owner=OURSELVES,
    title="Open a tab",
    description="Open a page in a tab of your own, in the background. From then on, your calls of "
    "the plugins that work there use this tab, and those of other clients do not. Returns the tab "
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


class TabsOpenTool:
    """`tabs_open`.

    Args:
        pages: The pages of all browsers.
        own_tabs: Opens tabs in them.
    """

    listing = OPEN
    limits: Limits | None = None

    def __init__(self, pages: Pages, own_tabs: OwnTabs) -> None:
        self._pages = pages
        self._own_tabs = own_tabs
        self._arguments = ArgumentReader(TABS_OPEN, OPEN.input_schema, limit=_LONGEST_INPUT)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what opens a tab; see `Tool.prepare`."""
        given = self._arguments.read(call.arguments)
        try:
            url = web_address(str(given["url"]))
        except ValueError as error:
            raise failures.invalid_arguments(TABS_OPEN, [("url", str(error))]) from None
        return partial(self._open, url, given.get("browser"), call.owner)

    async def _open(self, url: str, browser: object, client: str | None) -> Any:
        tab = await self._own_tabs.open(
            url, browser=None if browser is None else str(browser), client=client
        )
        try:
            await self._wait_loaded(tab, url)
        except anyio.get_cancelled_exc_class():
            self._own_tabs.discard(tab)  # the client will not know of it
            raise
        tabs = self._pages.tabs
        return describe_opened(
            tab,
            url,
            tabs.documents,
            tabs.loading,
            self._pages.names,
            owners=tabs.owners,
            client=client,
        )

    async def _wait_loaded(self, tab: int, url: str) -> None:
        has_plugin = any(bridge.serves(url) for bridge in self._pages.bridges)
        with anyio.move_on_after(LOADS_WITHIN if has_plugin else REDIRECTS_WITHIN):
            while not has_reported(tab, self._pages.tabs.documents):
                await self._pages.changed().wait()


class TabsCloseTool:
    """`tabs_close`.

    Args:
        own_tabs: Closes tabs.
    """

    listing = CLOSE
    limits: Limits | None = None

    def __init__(self, own_tabs: OwnTabs) -> None:
        self._own_tabs = own_tabs
        self._arguments = ArgumentReader(TABS_CLOSE, CLOSE.input_schema, limit=_LONGEST_INPUT)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what closes the tab; see `Tool.prepare`."""
        given: Any = self._arguments.read(call.arguments)
        # 7.0 is an integer in JSON Schema
        return partial(self._close, int(given["tabId"]), call.owner)

    async def _close(self, tab: int, client: str | None) -> Any:
        await self._own_tabs.close(tab, client=client)
        return {"closed": tab}
