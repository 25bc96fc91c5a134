"""`tabs_list`: the tool that tells agents which tabs there are."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.tool import Listing, ToolCall
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import OURSELVES, TABS_LIST
from opentabs_py.core.tab_list import SCHEMA, list_tabs

_LONGEST_INPUT: Final = 1024  # characters of JSON; there are no arguments

LISTING: Final = Listing(
    name=TABS_LIST,
    owner=OURSELVES,
    title="List the tabs",
    description="List the browser tabs that tools can use: the `tabId` of each, its title and URL, "
    "and the plugins whose tools work there. Of a plugin's tabs, its tools use the first by "
    "default. With several browsers, `browser` is the name of each tab's. Tabs that other clients "
    "opened for themselves are not listed.",
    input_schema={"type": "object", "properties": {}, "additionalProperties": False},
    output_schema=SCHEMA,
    annotations={"readOnlyHint": True, "openWorldHint": False},
    summary="List the browser tabs that tools can use",
)


ListTabs = Callable[[str | None], Awaitable[Sequence[dict[str, Any]]]]


class TabsTool:
    """The tool, over what the extension has reported; it needs no page.

    Args:
        pages: The pages of all browsers.
        list_all: Returns all tabs that a client may use, if tools can use those without plugins.
    """

    listing = LISTING
    limits: Limits | None = None

    def __init__(self, pages: Pages, list_all: ListTabs | None = None) -> None:
        self._pages = pages
        self._list_all = list_all
        self._arguments = ArgumentReader(TABS_LIST, LISTING.input_schema, limit=_LONGEST_INPUT)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what lists the open tabs; see `Tool.prepare`."""
        self._arguments.read(call.arguments)
        return partial(self._list, call.owner)

    async def _list(self, client: str | None) -> Any:
        tabs = self._pages.tabs
        if tabs.has_browser:  # without one there are no tabs, which is no error
            await self._pages.wait_linked()
        listed: Any = list_tabs(
            tabs.documents,
            tabs.loading,
            self._pages.names,
            owners=tabs.owners,
            client=client,
        )
        if self._list_all is None:
            return listed
        known = {each["tabId"] for each in listed["tabs"]}
        others = [each for each in await self._list_all(client) if each["tabId"] not in known]
        return {"tabs": [*listed["tabs"], *others]}
