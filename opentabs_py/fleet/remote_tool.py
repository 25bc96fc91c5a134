"""The tools of a fleet's workers, in an endpoint."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.arguments import check_size
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.page_arguments import read_tab_id
from opentabs_py.core.plugin_names import mcp_name, qualified_names

if TYPE_CHECKING:  # it needs nats-py
    from opentabs_py.fleet.catalog import Entry
    from opentabs_py.fleet.endpoint import Fleet


class RemoteTool:
    """A tool that runs in a worker of a fleet, which also checks its arguments.

    Args:
        fleet: The workers.
        entry: What they say of it.
        message_limit: The longest input, in characters of JSON. A worker may have a smaller one.
    """

    def __init__(self, fleet: "Fleet", entry: "Entry", *, message_limit: int) -> None:
        self.listing = entry.listing
        self.limits = entry.limits
        owner, name = entry.listing.owner, entry.listing.name
        tool = name.removeprefix(mcp_name(owner, ""))
        self.other_names = qualified_names(owner, tool) if entry.listing.needs_tab else ()
        self._digest = entry.digest
        self._fleet = fleet
        self._message_limit = message_limit

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Return the function that runs the tool in a worker; see `Tool.prepare`."""
        owner = self.listing.owner
        name, needs_tab = self.listing.name, self.listing.needs_tab
        if call.recorder is not None:
            call.recorder.record_tool(owner, name, in_page=needs_tab)
        check_size(name, call.arguments, limit=self._message_limit)
        wanted = Wanted(
            owner,
            self._digest,
            tab_id=read_tab_id(name, call.arguments) if needs_tab else None,
            own_tabs=self._fleet.own_tabs.of(call.session_key, owner),
        )
        return partial(self._fleet.call, name, wanted, call)
