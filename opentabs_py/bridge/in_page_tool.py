"""Tools that run in a page: send a call over the bridge."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.core import failures
from opentabs_py.core.limits import Limits
from opentabs_py.core.page_arguments import TAB_ID, read_tab_id
from opentabs_py.core.protocol import DocumentState, LoadingTab
from opentabs_py.core.questions import Place, find_place
from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tabs.selection import Target
from opentabs_py.errors import CallError

Checked: TypeAlias = tuple[Target, str, JsonObject]
"""Where a call runs, the tool's name there, and its arguments."""


class InPageTool(ABC):
    """A tool in a page, ready to be called.

    Args:
        pages: Where its calls run.

    Attributes:
        listing: Its public description.
        other_names: Names it can be called by, besides the listed one.
        plugin: What it belongs to in the pages.
    """

    limits: Limits | None = None
    listing: Listing
    other_names: tuple[str, ...]
    plugin: str

    def __init__(self, pages: Pages) -> None:
        self._pages = pages

    @property
    @abstractmethod
    def shown_as(self) -> tuple[str, str]:
        """Whose tool it is, and its name there, for records of calls."""

    @abstractmethod
    def check(self, given: Mapping[str, Any], client: SessionKey | None) -> Checked:
        """Return where a call runs, and its arguments.

        Raises:
            CallError: The arguments break the tool's schema, or no page can take the call.
        """

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return the function that runs it in a tab; see `Tool.prepare`."""
        if call.recorder is not None:
            call.recorder.record_tool(*self.shown_as, in_page=True)
        target, name, arguments = self.check(call.arguments, call.session_key)
        checked = replace(call, arguments=arguments)
        return partial(self._pages.call, target, name, checked)

    async def find_place(self, call: ToolCall) -> Place:
        """Return where a call would run now, as far as that is known."""
        chosen = self.find_document(call)
        documents = self._pages.tabs.documents if chosen is None else [chosen]
        return find_place(documents, self.plugin, read_tab_id(self.listing.name, call.arguments))

    def in_place(self, call: ToolCall, place: Place) -> ToolCall:
        """Return a call that runs in this tab, or not at all; see `PlacedTool`."""
        if find_place(self._pages.tabs.documents, self.plugin, place.tab_id).tab_id is None:
            raise failures.asked_tab_gone(self.listing.name)
        return replace(call, arguments={**call.arguments, TAB_ID: place.tab_id})

    async def wait_gone(self, place: Place) -> CallError:
        """Wait until no call can run in this place any more; see `PlacedTool`."""
        while self.may_run(place.tab_id):
            await self._pages.changed().wait()
        return failures.asked_tab_gone(self.listing.name)

    def may_run(self, tab_id: int | None) -> bool:
        """Return whether a call may still run in the tab that its user is asked about.

        Args:
            tab_id: The tab; None for any.
        """
        if tab_id is None:
            return True
        tabs = self._pages.bridges[self._pages.index_of(tab_id)].tabs
        shown: Sequence[DocumentState | LoadingTab] = (*tabs.documents, *tabs.loading)
        return not tabs.connected or any(
            each.tab_id == tab_id and self.plugin in each.plugins for each in shown
        )

    def find_document(self, call: ToolCall) -> DocumentState | None:
        """Return the document in which a call would run now; None if that is not known."""
        return self._pages.find_document(self.check(call.arguments, call.session_key)[0])
