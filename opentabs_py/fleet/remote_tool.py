"""The tools of a fleet's workers, in an endpoint."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.streams import STREAM_URI
from opentabs_py.calling.tool import Tool
from opentabs_py.core import failures
from opentabs_py.core.arguments import ArgumentReader, check_size
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.fleet.subjects import INSTANCE_LENGTH
from opentabs_py.core.page_arguments import TAB_ID, read_tab_id
from opentabs_py.core.plugin_names import OURSELVES, STREAM_TOOLS, mcp_name, qualified_names
from opentabs_py.core.questions import NOWHERE, Place
from opentabs_py.errors import CallError
from opentabs_py.fleet.remote_tabs import find_remote_place

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
        # Only tools of plugins have the name of their owner before their own.
        self._own_name = name.removeprefix(mcp_name(owner, "")) if entry.listing.needs_tab else name
        self.other_names = qualified_names(owner, self._own_name) if entry.listing.needs_tab else ()
        self._digest = entry.digest
        self._fleet = fleet
        self._message_limit = message_limit

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Return the function that runs the tool in a worker; see `Tool.prepare`."""
        owner = self.listing.owner
        name, needs_tab = self.listing.name, self.listing.needs_tab
        if call.recorder is not None:
            call.recorder.record_tool(owner, self._own_name, in_page=needs_tab)
        check_size(name, call.arguments, limit=self._message_limit)
        stream = _stream_of(call) if owner == OURSELVES else None  # which all of them take
        if stream is not None:
            return partial(self._call_about, stream, call)
        tab_id = read_tab_id(name, call.arguments) if needs_tab else None
        if call.recorder is not None and tab_id is not None:
            call.recorder.record_tab(tab_id)  # its worker's record may never arrive
        wanted = Wanted(
            owner,
            self._digest,
            tab_id=tab_id,
            own_tabs=self._fleet.holdings.of(call.session_key, owner),
        )
        return partial(self._fleet.call, name, wanted, call)

    async def find_place(self, call: ToolCall) -> Place:
        """Return where a call would run now, as far as that is known; see `PlacedTool`.

        Raises:
            CallRefusedError: Its worker would refuse the arguments, so there is nothing to ask.
        """
        name, schema, in_page = self.listing.name, self.listing.input_schema, self.listing.needs_tab
        reader = ArgumentReader(name, schema, limit=self._message_limit, in_page=in_page)
        reader.read(call.arguments)
        if not in_page:
            return NOWHERE
        tab = read_tab_id(name, call.arguments)
        if tab is None:
            own = self._fleet.holdings.of(call.session_key, self.listing.owner)
            tab = next(iter(own), None)
        return await find_remote_place(self._fleet, self.listing.owner, tab, call)

    def in_place(self, call: ToolCall, place: Place) -> ToolCall:
        """Return a call that runs in this tab, or not at all; see `PlacedTool`."""
        return replace(call, arguments={**call.arguments, TAB_ID: place.tab_id})

    async def wait_gone(self, place: Place) -> CallError:
        """Wait until the worker with this tab is gone; see `PlacedTool`."""
        while place.tab_id is None or self._fleet.holder(place.tab_id) is not None:
            await self._fleet.changed().wait()
        return failures.asked_tab_gone(self.listing.name)

    def beside(self, own: Tool) -> Tool:
        """Return what is served if a Python tool of the endpoint has the same name.

        That is the endpoint's tool, except that both read and end streams.
        """
        is_about_streams = {self.listing.owner, own.listing.owner} == {OURSELVES}
        if is_about_streams and self.listing.name in STREAM_TOOLS:
            return _StreamTool(own, self)
        return own

    def has_stream_of(self, call: ToolCall) -> bool:
        """Return whether a call is about a stream of a worker."""
        stream = _stream_of(call) or ""
        return self._fleet.directory.get(stream[:INSTANCE_LENGTH]) is not None

    async def _call_about(self, stream: str, call: ToolCall) -> Any:
        """Call a tool that reads or ends a stream, in the worker with whose run its id begins."""
        directory = self._fleet.directory
        worker = directory.get(stream[:INSTANCE_LENGTH])
        if worker is None or not directory.uses(worker):
            raise failures.no_stream(stream)
        return await self._fleet.call_in(worker, self.listing.name, call)


class _StreamTool:
    """A tool that reads or ends a stream, of the endpoint's own Python tools or of a worker's.

    Args:
        own: The tool for the endpoint's own.
        remote: The tool for those of the workers.
    """

    def __init__(self, own: Tool, remote: RemoteTool) -> None:
        self.listing = own.listing
        self.limits = own.limits
        self._own = own
        self._remote = remote

    def prepare(self, call: ToolCall) -> Callable[[], Awaitable[Any]]:
        """Return the function that makes a call where its stream is; see `Tool.prepare`."""
        tool = self._remote if self._remote.has_stream_of(call) else self._own
        return tool.prepare(call)


def _stream_of(call: ToolCall) -> str | None:
    """Return the id of the stream that a call is about, without its scheme; None if invalid."""
    stream = call.arguments.get("id")
    return stream.removeprefix(STREAM_URI) if isinstance(stream, str) else None
