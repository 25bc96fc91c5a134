"""The tabs of a fleet's workers, which the workers list when they are asked."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import anyio

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.plugin_names import TABS_LIST
from opentabs_py.core.questions import Place, find_place
from opentabs_py.errors import CallError

if TYPE_CHECKING:  # it needs nats-py
    from opentabs_py.core.fleet.messages import Announcement
    from opentabs_py.fleet.endpoint import Fleet

LISTED_WITHIN: Final = 2.0  # s; a worker that takes longer is left out


@dataclass(frozen=True, slots=True)
class RemoteTab:
    """A tab of a worker, and the plugins in it."""

    tab_id: int
    url: str
    title: str
    plugins: Collection[str]


async def list_tabs(fleet: "Fleet", call: ToolCall) -> "list[tuple[Announcement, dict[str, Any]]]":
    """Return the tabs of all workers that a call's client may use, as `tabs_list` does.

    Args:
        fleet: The workers.
        call: The call.
    """
    workers = fleet.directory.usable
    tabs: dict[str, list[dict[str, Any]]] = {}
    listing = replace(call, arguments={}, recorder=None, observers=())

    async def ask(worker: "Announcement") -> None:
        try:
            with anyio.fail_after(LISTED_WITHIN):
                listed = await fleet.call_in(worker, TABS_LIST, listing)
        except (CallError, TimeoutError):
            return  # it has just gone, or is too slow to be of use
        tabs[worker.instance] = listed["tabs"]

    async with anyio.create_task_group() as tasks:
        for worker in workers:
            tasks.start_soon(ask, worker)
    return [(each, tab) for each in workers for tab in tabs.get(each.instance, ())]


async def find_remote_place(
    fleet: "Fleet", plugin: str, tab_id: int | None, call: ToolCall
) -> Place:
    """Return where a call of a plugin would run now, as far as that is known.

    Args:
        fleet: The workers.
        plugin: The plugin.
        tab_id: The tab that the call names, or that its client has opened; None for any.
        call: The call.
    """
    readiness: dict[str, list[RemoteTab]] = {}
    for _, tab in await list_tabs(fleet, call):
        shown = RemoteTab(
            tab["tabId"], tab["url"], tab["title"], [each["name"] for each in tab["plugins"]]
        )
        for each in tab["plugins"]:
            if each["name"] == plugin:
                readiness.setdefault(each["readiness"], []).append(shown)
    every = [tab for tabs in readiness.values() for tab in tabs]
    documents = every if tab_id is not None else readiness.get("ready", every)
    return find_place(documents, plugin, tab_id)
