"""The callable tools, by their MCP names."""

import difflib
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import anyio

from opentabs_py.bridge.browsers import Pages
from opentabs_py.bridge.plugin_tool import PluginTool
from opentabs_py.calling.check import OutputCheck
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.observer import CallObserver, ProgressObserver, Recorder, instant
from opentabs_py.calling.tool import CallClient, Listing, Tool, ToolCall, new_call_id
from opentabs_py.consent.gate import Gate
from opentabs_py.core import consent, failures
from opentabs_py.core.consent import Decision, GatedTool, Standing
from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.limits import Limits
from opentabs_py.core.manifest import PluginManifest
from opentabs_py.core.page_tool_names import PAGE_OWNERS
from opentabs_py.core.plugin_names import HANDS
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.tabs import PluginStatus
from opentabs_py.core.text import visible
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.core.trace.recorder import CallRecording
from opentabs_py.errors import CallRefusedError, ChainError, ConfigError, ToolFailedError
from opentabs_py.server.call_permits import CallPermits
from opentabs_py.server.search import ToolSearch

logger = logging.getLogger(__name__)


class OtherwiseNamed(Tool, Protocol):
    """A tool that can also be called by other names than the listed one."""

    @property
    def other_names(self) -> Collection[str]:
        """These names."""
        ...


class _Running:
    """A running call, and who ended it, if a user did."""

    __slots__ = ("by", "scope")

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.by = ""


class ToolRegistry:
    """Finds tools, runs them, and checks their results.

    Args:
        pages: Where plugin tools run.
        limits: The default timers of calls.
        status: Returns the status of a plugin; by default, across the tabs of `pages`.
        input_limit: The largest input, in characters of JSON.
        strict_output: Fail calls whose value does not match the tool's output schema.
        debug: Send the stack traces of errors to MCP clients.
        beside_pages: Tools of our own that are served whenever plugin tools are; with hands among
            them, always.
        gate: Decides which calls may run; by default, all may.

    Attributes:
        limits: The default timers of calls.
        gate: Decides which calls may run. Tools that it turns off are not listed.
        record_values: Keep arguments and results, truncated, in the records of calls.
        excerpts: Truncates them, and masks secrets.
        output: Checks the values that tools return.
        debug: Send the stack traces of errors to MCP clients.
        read_stack: Maps a plugin's stack trace to its source, given the plugin's name and the
            stack trace as the page sent it.
        on_page_report: Called with the name, the id and the reports of every call of a plugin tool;
            must not block or raise. Python tools have their own handlers.
    """

    def __init__(
        self,
        pages: Pages,
        *,
        limits: Limits,
        status: Callable[[str], PluginStatus] | None = None,
        input_limit: int,
        strict_output: bool = False,
        debug: bool = False,
        beside_pages: Sequence[Tool] = (),
        gate: Gate | None = None,
    ) -> None:
        self.limits = limits
        self.gate = gate or Gate(AlarmClock(pages.clock), {consent.DEFAULT: "auto"})
        self.record_values = False
        self.excerpts = Excerpts()
        self.output = OutputCheck(strict=strict_output)
        self.debug = debug
        self.read_stack: Callable[[str, str], Awaitable[str]] | None = None
        self.on_page_report: Callable[[str, str, Sequence[ProgressReport]], None] | None = None
        self._pages = pages
        self._clock = pages.clock
        self._status = status
        self._input_limit = input_limit
        self._beside_pages = {tool.listing.name: tool for tool in beside_pages}
        self._has_hands = any(tool.listing.owner == HANDS for tool in beside_pages)
        self._others: dict[str, Tool] = {}
        self._of_pages: list[OtherwiseNamed] = []
        self._registered: Sequence[OtherwiseNamed] | None = None
        self._tools: dict[str, Tool] = {}
        self._by_other_names: dict[str, Tool] = {}
        self._listed: tuple[Tool, ...] = ()
        self._standings: Mapping[str, Standing] = {}
        self._decisions: dict[str, Decision] = {}
        self._search: ToolSearch | None = None  # built when first asked
        self._running: dict[str, _Running] = {}
        self._listeners: Listeners[[]] = Listeners("changes of the tool list")
        self._started: Listeners[[RecordSoFar]] = Listeners("calls")
        self._ended: Listeners[[CallRecord]] = Listeners("calls")
        self._ended_untraced: Listeners[[CallRecord]] = Listeners("calls")
        self.gate.subscribe(self._list)

    def set_plugins(
        self,
        manifests: Iterable[PluginManifest],
        standings: Mapping[str, Standing] = MappingProxyType({}),
    ) -> None:
        """Serve the tools of these plugins, instead of any other plugin tools.

        Args:
            manifests: The plugins.
            standings: What the user has said of them, by name; by default, that they named them.
        """
        self._standings = standings
        self._of_pages = [
            PluginTool(self._pages, manifest, tool, input_limit=self._input_limit)
            for manifest in manifests
            for tool in manifest.tools
        ]
        for tool in self._of_pages:
            if (name := tool.listing.name) in self._others:
                logger.error(
                    "The plugin %s and Python both have a tool %s; the plugin's is left out",
                    tool.listing.owner,
                    name,
                )
        self._list()

    def set_remote(self, tools: Iterable[OtherwiseNamed]) -> None:
        """Serve these tools of a fleet's workers, instead of any other plugin tools."""
        self._of_pages = [*tools]
        self._list()

    def set_tools(self, tools: Iterable[Tool]) -> None:
        """Serve these tools as well, instead of any that were set before.

        Raises:
            ConfigError: Two tools have the same name; those that were set before are kept.
        """
        served = {each.listing.name: each for each in self._of_pages}
        others: dict[str, Tool] = {}
        for tool in tools:
            name, owner = tool.listing.name, tool.listing.owner
            other = served.get(name) or others.get(name) or self._beside_pages.get(name)
            if other is not None:
                raise ConfigError(
                    f"Two tools are named {name}: one from {other.listing.owner}, one from "
                    f'{owner}. Rename one: @tool(name="...").'
                )
            others[name] = tool
        self._others = others
        self._list()

    def set_registered(self, tools: Sequence[OtherwiseNamed]) -> None:
        """Serve these tools that pages have registered themselves, instead of any earlier ones.

        A name that another tool has stays that tool's.
        """
        self._registered = tools
        self._list()

    @property
    def own_names(self) -> Collection[str]:
        """The names of all tools but those that pages have registered themselves."""
        beside = self._beside_pages.keys()
        named = {each.listing.name for each in self._of_pages} | self._others.keys() | beside
        return named.union(*(each.other_names for each in self._of_pages))

    def _list(self) -> None:
        before = [_seen(tool.listing) for tool in self.tools]
        names = self._others
        of_pages = [tool for tool in self._of_pages if tool.listing.name not in names]
        is_needed = bool(of_pages) or self._registered is not None or self._has_hands
        beside = self._beside_pages.values() if is_needed else ()
        tools: list[Tool] = [*of_pages, *beside, *names.values()]
        if self._registered:
            ours = self.own_names
            registered = [each for each in self._registered if each.listing.name not in ours]
            of_pages = [*registered, *of_pages]  # of two alike other names, the plugin's counts
            tools += registered
        tools.sort(key=lambda each: each.listing.name)
        self._tools = {tool.listing.name: tool for tool in tools}
        self._decisions = {
            name: self.gate.decide(self._gated(tool.listing)) for name, tool in self._tools.items()
        }
        self._listed = tuple(
            tool for tool in tools if self._decisions[tool.listing.name].permission != "off"
        )
        self._search = None
        self._by_other_names = {name: tool for tool in of_pages for name in tool.other_names}
        for name in self._by_other_names.keys() & names.keys():
            logger.warning(
                "%s is a Python tool; call the plugin %s's tool as %s",
                name,
                self._by_other_names[name].listing.owner,
                self._by_other_names[name].listing.name,
            )
        self.output.clear()
        if [_seen(tool.listing) for tool in self.tools] != before:
            self._listeners.notify()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools that clients see change; return the unsubscriber."""
        return self._listeners.subscribe(listener)

    def observe(
        self,
        observer: Callable[[CallRecord], None],
        *,
        on_start: Callable[[RecordSoFar], None] | None = None,
        traced: bool = True,
    ) -> Callable[[], None]:
        """Call a function with the record of every call that ends from now on, however it ends.

        It is called before the caller gets the result, in the caller's task, and must not block.
        Calls are traced if some observer wants that.

        Args:
            observer: Receives each record.
            on_start: Called in the same way when a call begins, with a function that returns its
                record so far.
            traced: Whether the records should say when the call passed each hop, and without
                `on_start`, what it reported and what its plugin logged. That costs each call some
                time.

        Returns:
            A function that ends the observation.
        """
        ends = [(self._ended if traced else self._ended_untraced).subscribe(observer)]
        if on_start is not None:
            ends.append(self._started.subscribe(on_start))

        def end() -> None:
            for each in ends:
                each()

        return end

    @property
    def running(self) -> int:
        """How many calls run now, or wait for the user to allow them."""
        return len(self._running)

    def cancel(self, call_id: str, *, by: str) -> bool:
        """End a running call; its tool is notified, and its caller receives an error.

        Args:
            call_id: The call's id.
            by: Who ends it, for example "the user, in the console".

        Returns:
            Whether it was running.
        """
        running = self._running.get(call_id)
        if running is None:
            return False
        running.by = by
        running.scope.cancel()
        return True

    def unknown_rules(self) -> Collection[str]:
        """Return the permissions that name neither a tool that is served nor its plugin."""
        known = {consent.DEFAULT}
        for tool in self._tools.values():
            gated = self._gated(tool.listing)
            known |= {gated.plugin, gated.rule, f"{gated.plugin}.{gated.name}"}
        # Those of pages may be for a site that is not open.
        rules = [rule for rule in self.gate.rules if not rule.startswith(PAGE_OWNERS)]
        return [rule for rule in rules if rule not in known]

    def decision(self, name: str) -> Decision | None:
        """Return what happens to the calls of a tool; None if there is no such tool."""
        tool = self.get(name)
        return None if tool is None else self._decisions[tool.listing.name]

    @property
    def all_tools(self) -> Collection[Tool]:
        """All tools, sorted by name, and those that are turned off."""
        return self._tools.values()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that are not turned off, sorted by name; the same object until they change."""
        return self._listed

    def get(self, name: str) -> Tool | None:
        """Return a tool by its MCP name, or a plugin's tool by `plugin__tool`; None if unknown.

        `plugin__tool` is the convention of others in the ecosystem; it is not listed.
        """
        return self._tools.get(name) or self._by_other_names.get(name)

    def find(self, name: str) -> Tool:
        """Return a tool by a name that `get` knows.

        Raises:
            CallRefusedError: There is no such tool; the text suggests similar names.
        """
        tool = self.get(name)
        if tool is None:
            raise self._unknown(name)
        return tool

    def search(self, query: str) -> list[Listing]:
        """Return the tools that match any word of a query, the best first."""
        if self._search is None:
            self._search = ToolSearch(tool.listing for tool in self._listed)
        return self._search.find(query)

    def status(self, owner: str) -> PluginStatus | None:
        """Return the status of a plugin across its tabs; None for tools that need no tab."""
        if any(tool.listing.owner == owner for tool in self._registered or ()):
            return "ready"  # they are listed only while their page is there
        if any(tool.listing.owner == owner and tool.listing.needs_tab for tool in self._of_pages):
            find = self._status or self._pages.tabs.status
            return find(owner)
        return None

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON Schema of a tool's arguments; None if there is no such tool."""
        tool = self.get(name)
        return None if tool is None else tool.listing.input_schema

    async def call(
        self,
        tool: Tool | str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
        client: CallClient | None = None,
        client_name: str | None = None,
        call_id: str | None = None,
        on_record: Callable[[CallRecord], None] | None = None,
        traced: bool = True,
        allowed_by: str | None = None,
        is_nested: bool = False,
    ) -> Any:
        """Call a tool and return its value: a JSON value, or an `Output`.

        Args:
            tool: The tool, or its name as in `tools/list`, or `plugin__tool`.
            arguments: With or without `tabId`.
            limits: Timers to use instead of the server's.
            observers: Are notified of what the call does.
            client: The MCP client that makes the call.
            client_name: Who makes the call; by default, the client's name.
            call_id: The call's id, which no running call may have; a new one by default.
            on_record: Called with its record when it has ended, before this returns.
            traced: Whether that record should say when the call passed each hop.
            allowed_by: The user who makes the call, so that no prompt is needed.
            is_nested: Whether a running tool makes the call.

        Raises:
            CallRefusedError: No such tool, the arguments break its schema or the limit, or the user
                does not allow it.
            CallTimeoutError: A timer ended it.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
            BrokenResultError: Its value does not match its output schema; see `OutputCheck`.
        """
        if call_id in self._running:
            raise failures.id_in_use(call_id)
        found = self.get(tool) if isinstance(tool, str) else tool
        name = str(tool) if found is None else found.listing.name
        own = None if found is None else found.limits
        call = ToolCall(
            arguments,
            limits or own or self.limits,
            tuple(observers),
            client=client,
            client_name=client_name or (None if client is None else client.name),
            is_nested=is_nested,
            call_id=call_id or new_call_id(),
        )
        is_traced = bool(self._ended) or (on_record is not None and traced)
        if not (is_traced or self._ended_untraced or on_record is not None):
            return await self._run(found, name, call, allowed_by)
        recording = CallRecording(
            call_id=call.call_id,
            name=name,
            limits=call.limits,
            now=instant(self._clock),
            arguments=arguments if self.record_values else None,
            client=call.client_name,
            excerpts=self.excerpts,
            is_traced=is_traced,
        )
        # Whoever wants to know of its start may look at it while it runs.
        is_watched = is_traced or bool(self._started)
        recorders = (Recorder(recording, self._clock),) if is_watched else ()
        call = replace(call, recording=recording, observers=(*recorders, *call.observers))
        self._started.notify(lambda: recording.so_far(instant(self._clock)))
        try:
            value = await self._run(found, name, call, allowed_by)
        except BaseException as error:
            self._notify_ended(recording.fail(error, instant(self._clock)), on_record)
            raise
        self._notify_ended(recording.succeed(value, instant(self._clock)), on_record)
        return value

    def _notify_ended(
        self, record: CallRecord, on_record: Callable[[CallRecord], None] | None
    ) -> None:
        if on_record is not None:
            on_record(record)
        self._ended.notify(record)
        self._ended_untraced.notify(record)

    async def _run(
        self, tool: Tool | None, name: str, call: ToolCall, allowed_by: str | None
    ) -> Any:
        if tool is None:
            raise self._unknown(name)
        if self.on_page_report is not None and tool.listing.needs_tab:
            report = partial(self.on_page_report, name, call.call_id)
            call = replace(call, observers=(*call.observers, ProgressObserver(report)))
        make = tool.prepare(call)
        running = self._running[call.call_id] = _Running()
        value = None
        try:
            with running.scope:
                value = await self._make(tool, call, allowed_by, make)
        except ToolFailedError as error:
            if tool.listing.needs_tab:
                await self._note_stack(tool.listing, error)
            raise
        finally:
            del self._running[call.call_id]
        if running.scope.cancelled_caught:
            raise failures.cancelled_by(running.by)
        self.output.check(tool.listing, value)
        return value

    def _decision(self, name: str) -> Decision:
        decided = self._decisions.get(name)
        if decided is None:  # the tool has left the list since it was looked up
            raise self._unknown(name)
        return decided

    async def _make(
        self, tool: Tool, call: ToolCall, allowed_by: str | None, make: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Make a call once it is allowed; if its user has to sign in first, make it then."""
        name = tool.listing.name
        decided = self._decisions.get(name)
        if decided is None or decided.permission != "auto":
            permits = self._permits(tool)
            permit = await permits.wait_allowed(call, allowed_by, partial(self._decision, name))
            allowed_by, make = permit.by, permits.bind(call, permit, make)
        if call.recording is not None:
            call.recording.allow(allowed_by or "auto")
        try:
            return await make()
        except ChainError as error:
            await self._permits(tool).sign_in(call, error)
            return await make()

    def _permits(self, tool: Tool) -> CallPermits:
        return CallPermits(self.gate, self._pages, tool, self._gated(tool.listing))

    def _gated(self, listing: Listing) -> GatedTool:
        hints = listing.annotations or {}
        return GatedTool(
            listing.owner,
            listing.name,
            read_only=hints.get("readOnlyHint") is True,
            standing=self._standing(listing),
        )

    def _standing(self, listing: Listing) -> Standing:
        if listing.is_of_page:
            return "page"
        if listing.owner == HANDS:
            return "reviewed"  # they are ours; but what acts on any page is asked about
        return self._standings.get(listing.owner, "named")

    def _unknown(self, name: str) -> CallRefusedError:
        return failures.unknown_tool(name, difflib.get_close_matches(name, self._tools, n=2))

    async def _note_stack(self, tool: Listing, error: ToolFailedError) -> None:
        """Map an error's stack trace to the plugin's source, and log it."""
        stack = error.detail.stack
        if stack is None:
            return
        if self.read_stack is not None:
            stack = await self.read_stack(tool.owner, stack)
            error.detail = replace(error.detail, stack=stack)
        # With a code, the tool raised the error deliberately, for its caller to read.
        level = logging.WARNING if error.detail.code == "INTERNAL_ERROR" else logging.DEBUG
        log = logging.getLogger(f"opentabs_py.plugin.{tool.owner}")
        log.log(level, "%s threw %s", tool.name, visible(stack))


def _seen(listing: Listing) -> Listing:
    """Return the parts of a listing that are in the list of tools."""
    output = listing.output_schema if listing.promises_object else None
    return replace(listing, owner="", summary="", group="", icon="", output_schema=output)
