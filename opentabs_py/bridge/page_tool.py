"""Tools that pages register themselves: check a call, and choose a page that has the tool."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from opentabs_py.bridge.in_page_tool import Checked, InPageTool
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.page_arguments import listed_schema, split_tab_id
from opentabs_py.core.page_tools import ListedPageTool, wire_name
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import DocumentState, RegisteredTool
from opentabs_py.core.questions import Place
from opentabs_py.core.schemas.patterns import with_small_patterns
from opentabs_py.core.tabs.browsers import choose_page
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import CallError

META_KEY: Final = "opentabs/webmcp"  # in `_meta` of a listed tool

Registration = tuple[DocumentState, RegisteredTool]


class PageTool(InPageTool):
    """A tool of one or several pages of a site, ready to be called.

    Args:
        pages: Where its calls run.
        tool: The tool as it is listed.
        message_limit: The longest input, in characters of JSON.
    """

    plugin = PAGE

    def __init__(self, pages: Pages, tool: ListedPageTool, *, message_limit: int) -> None:
        super().__init__(pages)
        self.tool = tool
        self.listing = Listing(
            name=tool.name,
            owner=tool.site.owner,
            title=tool.title,
            description=tool.description,
            input_schema=listed_schema(tool.input_schema),
            annotations=tool.annotations,
            needs_tab=True,
            is_of_page=True,
            meta={META_KEY: tool.meta},
        )
        self.other_names = tool.other_names
        self._message_limit = message_limit

    @cached_property
    def _arguments(self) -> ArgumentReader:
        """Created by the first call: of a page's tools, most are never called."""
        schema = with_small_patterns({"type": "object", **self.tool.registered.input_schema})
        return ArgumentReader(self.tool.name, schema, limit=self._message_limit, in_page=True)

    @property
    def shown_as(self) -> tuple[str, str]:
        """Whose tool it is, and its name in the page, for records of calls."""
        return self.listing.owner, self.tool.registered.name

    def check(self, given: Mapping[str, Any], client: SessionKey | None) -> Checked:
        """Return where a call runs: in one document, which has the tool now.

        Raises:
            CallError: The arguments break its schema, or there is no such document.
        """
        tab_id, arguments = split_tab_id(self.listing.name, given)
        read = self._arguments.read(arguments)
        document, registered = self._choose(tab_id, client)
        target = self._target(document.tab_id, client, document.document_id)
        return target, wire_name(registered), read

    async def wait_gone(self, place: Place) -> CallError:
        """Wait until no call can run in this place any more; see `PlacedTool`."""
        await super().wait_gone(place)
        return failures.asked_page_gone(self.listing.name)

    def may_run(self, tab_id: int | None) -> bool:
        """Return whether a page offers the tool now, or may still register it because it loads."""
        return any(
            bridge.page_tools.may_have(self.tool, tab_id)
            for bridge in self._pages.bridges
            if bridge.page_tools is not None
        )

    def _target(
        self, tab_id: int | None, client: SessionKey | None, document_id: str | None = None
    ) -> Target:
        return Target(
            PAGE,
            tab_id=tab_id,
            client=client,
            document_id=document_id,
            page_tool=self.listing.name,
        )

    def _choose(self, tab_id: int | None, client: SessionKey | None) -> Registration:
        """Return the page that a call runs in, and its registration of the tool."""
        found = {
            document.tab_id: (document, registered)
            for bridge in self._pages.bridges
            if bridge.page_tools is not None
            for document, registered in bridge.page_tools.places(self.tool)
        }
        preferred = self._pages.preferred_browser(client)
        chosen = choose_page(
            [document for document, _ in found.values()],
            self._target(tab_id, client),
            self._pages.tabs.owners,
            self._pages.names,
            None if preferred is None else self._pages.bridges[preferred].number,
        )
        if isinstance(chosen, CallError):
            raise chosen
        return found[chosen.tab_id]

    def find_document(self, call: ToolCall) -> DocumentState | None:
        """Return the document in which a call would run now; None if that is not known."""
        try:
            return super().find_document(call)
        except CallError:
            return None
