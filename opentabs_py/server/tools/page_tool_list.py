"""List the tools that pages register themselves, and follow the pages."""

import logging
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import anyio

from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.bridge.pages import Pages
from opentabs_py.core.page_tool_names import site_of
from opentabs_py.core.page_tools import (
    MOST,
    Cadence,
    ListedPageTool,
    PageRegistrations,
    SchemaCache,
    list_tools,
)
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import DocumentState, RegisteredTool
from opentabs_py.core.tabs.selection import Wait
from opentabs_py.server.tools.registry import ToolRegistry

logger = logging.getLogger(__name__)

# Of tools that are not listed; a page may register others all the time.
MOST_WARNINGS: Final = 50  # in each period
PERIOD: Final = 60.0  # s


class PageToolList:
    """The tools of all pages, in the registry.

    Args:
        pages: The pages of all browsers.
        registry: Lists the tools.
        message_limit: The longest input, in characters of JSON.
        cadence: Decides how often the list changes.
    """

    def __init__(
        self,
        pages: Pages,
        registry: ToolRegistry,
        *,
        message_limit: int,
        cadence: Cadence | None = None,
    ) -> None:
        self._pages = pages
        self._registry = registry
        self._message_limit = message_limit
        self._cadence = cadence or Cadence()
        self._schemas = SchemaCache()
        self._tools: dict[str, PageTool] = {}
        self._left: dict[str, PageTool] = {}  # the list; a page loads that may register them again
        self._listed: object = None
        self._refused: set[str] = set()
        self._warnings = 0  # in this period
        self._period_began = -inf

    async def run(self) -> None:
        """Follow the pages until cancelled."""
        while True:
            changed = self._pages.changed()
            now = anyio.current_time()
            until = self._link_until(now)
            if until is None:
                until = self._cadence.due(now, is_changed=self._versions() != self._listed)
                if until <= now:
                    self.refresh()
                    continue
            with anyio.CancelScope(deadline=until):
                await changed.wait()

    def refresh(self) -> None:
        """List the tools that the pages have now."""
        began = anyio.current_time()
        self._listed = self._versions()
        registrations = self._registrations() if self._is_there(began) else []
        tools, refused = list_tools(registrations, self._registry.own_names, self._schemas)
        before = self._left | self._tools
        self._tools = {tool.name: self._create(tool) for tool in tools}
        left = [name for name in before if name not in self._tools and before[name].may_run(None)]
        self._left = {name: before[name] for name in left[-MOST:]}
        self._registry.set_registered([*self._tools.values()], self._may_return)
        self._warn(refused, began)
        now = anyio.current_time()
        self._cadence.handle_listed(now, took=now - began)

    def _may_return(self, name: str) -> bool:
        return name in self._left and self._left[name].may_run(None)

    def _warn(self, refused: Mapping[str, str], now: float) -> None:
        if now - self._period_began >= PERIOD:
            self._period_began, self._warnings = now, 0
        for what, why in refused.items():
            if what in self._refused or self._warnings == MOST_WARNINGS:
                continue
            self._warnings += 1
            logger.warning("Not all tools of a page are listed: %s: %s", what, why)
            if self._warnings == MOST_WARNINGS:
                logger.warning(
                    "Many tools of pages are not listed; for a minute, no more are logged"
                )
        self._refused = {*refused}

    async def wait_for(self, url: str) -> tuple[int, Sequence[PageTool]]:
        """Wait until a page has loaded, and return its tab and the tools that it has then.

        Args:
            url: The page's URL, with its fragment.

        Raises:
            LookupError: Several tabs show that URL.
        """
        while True:
            changed = self._pages.changed()
            found = [each for each in self._documents() if each[0].url == url]
            if len(found) > 1:
                raise LookupError(
                    f"{len(found)} tabs show {url}. Open them as {url}#1, #2 and so on."
                )
            for document, registered in found:
                if registered is not None and document.plugins[PAGE].readiness == "ready":
                    self.refresh()
                    return document.tab_id, self._find(url, registered)
            await changed.wait()

    def _documents(self) -> list[tuple[DocumentState, Sequence[RegisteredTool] | None]]:
        return [
            (document, registrations.of_document(document.document_id))
            for bridge in self._pages.bridges
            if (registrations := bridge.page_tools) is not None
            for document in bridge.tabs.documents
            if PAGE in document.plugins
        ]

    def _find(self, url: str, registered: Sequence[RegisteredTool]) -> Sequence[PageTool]:
        site = site_of(url)
        listed = [each for each in self._tools.values() if each.tool.site == site]
        return [tool for each in registered for tool in listed if tool.tool.is_same(each)]

    def _create(self, tool: ListedPageTool) -> PageTool:
        known = self._tools.get(tool.name)
        if known is not None and known.tool == tool:
            return known  # with its compiled schema
        return PageTool(self._pages, tool, message_limit=self._message_limit)

    def _link_until(self, now: float) -> float | None:
        """Return until when an extension is waited for that has just disconnected."""
        gap = self._pages.tabs.why_disconnected(now)
        return gap.until if isinstance(gap, Wait) and gap.until < inf else None

    def _is_there(self, now: float) -> bool:
        """Return whether an extension is connected, or about to reconnect."""
        gap = self._pages.tabs.why_disconnected(now)
        return gap is None or isinstance(gap, Wait)

    def _versions(self) -> object:
        is_there = self._is_there(anyio.current_time())
        return is_there, [registrations.version for registrations in self._registrations()]

    def _registrations(self) -> list[PageRegistrations]:
        return [each.page_tools for each in self._pages.bridges if each.page_tools is not None]
