"""`tabs_list`, `tabs_open` and `tabs_close` in the workers of a fleet."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from opentabs_py.calling.call import ToolCall
from opentabs_py.core import failures
from opentabs_py.core.fleet.failures import no_browser
from opentabs_py.core.plugin_names import TABS_CLOSE, TABS_OPEN
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import CallRefusedError
from opentabs_py.fleet.remote_tabs import list_tabs
from opentabs_py.server.tools.tab_tools import TabsClose, TabsList, TabsOpen

if TYPE_CHECKING:  # it needs nats-py
    from opentabs_py.core.fleet.messages import Announcement
    from opentabs_py.fleet.endpoint import Fleet


class RemoteTabsList(TabsList):
    """`tabs_list`, of all workers.

    Args:
        fleet: The workers.
    """

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet

    async def list_tabs(self, call: ToolCall) -> Any:
        """Return the tabs of all workers that the call's client may use."""
        own = {each.instance for each in self._fleet.holdings.workers(call.session_key)}
        tabs = await list_tabs(self._fleet, call)
        tabs.sort(key=lambda each: each[0].instance not in own)
        return {"tabs": [_of_worker(tab, worker) for worker, tab in tabs]}


class RemoteTabsOpen(TabsOpen):
    """`tabs_open`, in one of the workers.

    Args:
        fleet: The workers.
    """

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet

    async def open_tab(self, call: ToolCall, url: str, browser: str | None) -> Any:
        """Open a tab in a worker, and return it."""
        client = call.session_key
        worker = self._choose(url, browser, client)
        arguments = {"url": url}
        if browser is not None and len(worker.browsers) > 1:
            arguments["browser"] = browser.partition("/")[2]
        try:
            tab = await self._fleet.call_in(worker, TABS_OPEN, replace(call, arguments=arguments))
        except anyio.get_cancelled_exc_class():
            self._fleet.keep(client, worker)  # it may be open
            raise
        works = (each["name"] for each in tab["plugins"])
        plugins = frozenset((*works, *self._fleet.catalog.serving(worker, url)))
        self._fleet.own(client, tab["tabId"], worker, plugins)
        return _of_worker(tab, worker)

    def _choose(self, url: str, named: str | None, client: SessionKey | None) -> "Announcement":
        workers = [each for each in self._fleet.directory.usable if each.browsers]
        if not workers:
            raise no_browser()
        if named is not None:
            found = [each for each in workers if named in browser_names(each)]
            if not found:
                every = [name for each in workers for name in browser_names(each)]
                raise failures.which_browser(every, named)
            return found[0]
        usable = {each.instance: each for each in workers}
        with_own = (each.instance for each in self._fleet.holdings.workers(client))
        own = [usable[instance] for instance in with_own if instance in usable]
        serving = self._fleet.catalog.serving
        fitting = [each for each in own if serving(each, url)] or [
            each for each in workers if serving(each, url)
        ]
        return self._fleet.least_busy(fitting or own or workers)


class RemoteTabsClose(TabsClose):
    """`tabs_close`, in the worker that has the tab.

    Args:
        fleet: The workers.
    """

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet

    async def close_tab(self, call: ToolCall, tab: int) -> Any:
        """Close a tab in the worker that has it."""
        worker = self._fleet.holder(tab)
        if worker is None:
            raise failures.not_own_tab(tab)
        try:
            closed = await self._fleet.call_in(worker, TABS_CLOSE, call)
        except CallRefusedError:  # a person or the page may have closed it
            self._fleet.disown(call.session_key, tab)
            raise
        self._fleet.disown(call.session_key, tab)
        return closed


def browser_names(worker: "Announcement") -> list[str]:
    """Return the names of a worker's browsers in the whole fleet."""
    if len(worker.browsers) == 1:
        return [worker.name]
    return [f"{worker.name}/{browser}" for browser in worker.browsers]


def _of_worker(tab: dict[str, Any], worker: "Announcement") -> dict[str, Any]:
    browser = tab.get("browser")
    return tab | {"browser": worker.name if browser is None else f"{worker.name}/{browser}"}
