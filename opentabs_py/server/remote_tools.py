"""The tools of a fleet's workers, and our own tools about tabs, in an endpoint."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from opentabs_py.browser.urls import web_address
from opentabs_py.calling.tool import ToolCall
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader
from opentabs_py.core.fleet.failures import no_worker
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.limits import Limits
from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.plugin_names import mcp_name, qualified_names
from opentabs_py.errors import CallError, CallRefusedError
from opentabs_py.server.own_tabs import CLOSE, OPEN
from opentabs_py.server.tabs_tool import LISTING

if TYPE_CHECKING:  # it needs nats-py
    from opentabs_py.core.fleet.messages import Announcement
    from opentabs_py.fleet.catalog import Entry
    from opentabs_py.fleet.endpoint import Fleet

LISTED_WITHIN: Final = 2.0  # s; a worker that takes longer is left out
_LONGEST_INPUT: Final = 64 * 1024  # characters of JSON


class RemoteTool:
    """A tool that runs in a worker of a fleet, which also checks its arguments.

    Args:
        fleet: The workers.
        entry: What they say of it.
    """

    def __init__(self, fleet: "Fleet", entry: "Entry") -> None:
        self.listing = entry.listing
        self.limits = entry.limits
        owner, name = entry.listing.owner, entry.listing.name
        tool = name.removeprefix(mcp_name(owner, ""))
        self.other_names = qualified_names(owner, tool) if entry.listing.needs_tab else ()
        self._fleet = fleet

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Return the function that runs the tool in a worker; see `Tool.prepare`."""
        owner = self.listing.owner
        if call.recording is not None:
            call.recording.resolve(owner, self.listing.name)
        tab = call.arguments.get(TAB_ID) if self.listing.needs_tab else None
        wanted = Wanted(
            owner,
            tab_id=tab if isinstance(tab, int) else None,  # the worker says what is wrong with it
            own_tabs=self._fleet.own_tabs.of(call.owner, owner),
        )
        return partial(self._fleet.call, self.listing.name, wanted, call)


class RemoteTabsList:
    """`tabs_list`, of all workers.

    Args:
        fleet: The workers.
    """

    listing = LISTING
    limits: Limits | None = None

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet
        self._arguments = ArgumentReader(LISTING.name, LISTING.input_schema, limit=_LONGEST_INPUT)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what lists the open tabs; see `Tool.prepare`."""
        self._arguments.read(call.arguments)
        return partial(self._list, call)

    async def _list(self, call: ToolCall) -> Any:
        workers = self._fleet.directory.usable
        tabs: dict[str, list[Any]] = {}

        async def ask(worker: "Announcement") -> None:
            try:
                with anyio.fail_after(LISTED_WITHIN):
                    listed = await self._fleet.call_in(worker, LISTING.name, call)
            except (CallError, TimeoutError):
                return  # it has just gone, or is too slow to be of use
            tabs[worker.instance] = [_of_worker(tab, worker) for tab in listed["tabs"]]

        async with anyio.create_task_group() as tasks:
            for worker in workers:
                tasks.start_soon(ask, worker)
        own = {each.instance for each in self._fleet.own_tabs.workers(call.owner)}
        in_order = sorted(workers, key=lambda each: each.instance not in own)
        return {"tabs": [tab for each in in_order for tab in tabs.get(each.instance, ())]}


class RemoteTabsOpen:
    """`tabs_open`, in one of the workers.

    Args:
        fleet: The workers.
    """

    listing = OPEN
    limits: Limits | None = None

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet
        self._arguments = ArgumentReader(OPEN.name, OPEN.input_schema, limit=_LONGEST_INPUT)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what opens a tab; see `Tool.prepare`."""
        given = self._arguments.read(call.arguments)
        try:
            url = web_address(str(given["url"]))
        except ValueError as error:
            raise failures.invalid_arguments(OPEN.name, [("url", str(error))]) from None
        return partial(self._open, call, url, given.get("browser"))

    async def _open(self, call: ToolCall, url: str, named: object) -> Any:
        client = call.owner
        worker = self._choose(url, None if named is None else str(named), client)
        arguments = {"url": url}
        if named is not None and len(worker.browsers) > 1:
            arguments["browser"] = str(named).partition("/")[2]
        tab = await self._fleet.call_in(worker, OPEN.name, replace(call, arguments=arguments))
        plugins = frozenset(each["name"] for each in tab["plugins"])
        self._fleet.own(client, tab["tabId"], worker, plugins)
        return _of_worker(tab, worker)

    def _choose(self, url: str, named: str | None, client: str | None) -> "Announcement":
        workers = self._fleet.directory.usable
        if named is not None:
            found = [each for each in workers if named in browser_names(each)]
            if not found:
                every = [name for each in workers for name in browser_names(each)]
                raise failures.which_browser(every, named)
            return found[0]
        if not workers:
            raise no_worker(OPEN.name)
        own = self._fleet.own_tabs.workers(client)
        fitting = [each for each in own or workers if self._fleet.catalog.serves(each, url)]
        return self._fleet.least_busy(fitting or own or workers)


class RemoteTabsClose:
    """`tabs_close`, in the worker that has the tab.

    Args:
        fleet: The workers.
    """

    listing = CLOSE
    limits: Limits | None = None

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet
        self._arguments = ArgumentReader(CLOSE.name, CLOSE.input_schema, limit=_LONGEST_INPUT)

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Check a call, and return what closes the tab; see `Tool.prepare`."""
        given: Any = self._arguments.read(call.arguments)
        return partial(self._close, call, int(given["tabId"]))

    async def _close(self, call: ToolCall, tab: int) -> Any:
        worker = self._fleet.holder(tab)
        if worker is None:
            raise failures.not_own_tab(tab)
        try:
            closed = await self._fleet.call_in(worker, CLOSE.name, call)
        except CallRefusedError:  # a person or the page may have closed it
            self._fleet.disown(call.owner, tab)
            raise
        self._fleet.disown(call.owner, tab)
        return closed


def browser_names(worker: "Announcement") -> list[str]:
    """Return the names of a worker's browsers in the whole fleet."""
    if len(worker.browsers) == 1:
        return [worker.name]
    return [f"{worker.name}/{browser}" for browser in worker.browsers]


def _of_worker(tab: dict[str, Any], worker: "Announcement") -> dict[str, Any]:
    browser = tab.get("browser")
    return tab | {"browser": worker.name if browser is None else f"{worker.name}/{browser}"}
