"""The tools of a server, their names, and which of them are listed."""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from opentabs_py.bridge.pages import Pages
from opentabs_py.bridge.plugin_tool import PluginTool
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.listing import Listing
from opentabs_py.calling.tool import Tool
from opentabs_py.consent.gate import Gate
from opentabs_py.core import consent, failures
from opentabs_py.core.consent import Decision, GatedTool, Standing
from opentabs_py.core.plugin_names import HANDS, same_name
from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.tabs.selection import PluginStatus
from opentabs_py.core.text import nearest
from opentabs_py.errors import CallError
from opentabs_py.server.tools.search import ToolSearch

if TYPE_CHECKING:  # a server outside a fleet does not need it
    from opentabs_py.fleet.remote_tool import RemoteTool

logger = logging.getLogger(__name__)


class OtherwiseNamed(Tool, Protocol):
    """A tool that can also be called by other names than the listed one."""

    @property
    def other_names(self) -> Collection[str]:
        """These names."""
        ...


class ToolRegistry:
    """The tools of a server, by their MCP names.

    Args:
        pages: Where plugin tools run.
        message_limit: The longest input, in characters of JSON.
        status: Returns the status of a plugin; by default, across the tabs of `pages`.
        built_in: Our own tools, served beside plugin tools; always served if they include
            hands.
        gate: Decides which calls may run; by default, all may.
        why_empty: Returns the error for a tool that is unknown because nothing that has tools is
            there now; None if something is.

    Attributes:
        gate: Decides which calls may run. Tools that it turns off are not listed.
    """

    def __init__(
        self,
        pages: Pages,
        *,
        message_limit: int,
        status: Callable[[str], PluginStatus] | None = None,
        built_in: Sequence[Tool] = (),
        gate: Gate | None = None,
        why_empty: Callable[[], CallError | None] = lambda: None,
    ) -> None:
        self.gate = gate or Gate(AlarmClock(pages.clock), {consent.DEFAULT: "auto"})
        self._pages = pages
        self._status = status
        self._why_empty = why_empty
        self._message_limit = message_limit
        self._built_in = {tool.listing.name: tool for tool in built_in}
        self._has_hands = any(tool.listing.owner == HANDS for tool in built_in)
        self._python_tools: dict[str, Tool] = {}
        self._plugin_tools: Sequence[OtherwiseNamed] = ()
        self._remote: Mapping[str, RemoteTool] = {}  # those of them that workers have
        self._registered: Sequence[OtherwiseNamed] | None = None
        self._may_return: Callable[[str], bool] = lambda _name: False
        self._tools: dict[str, Tool] = {}
        self._by_other_names: dict[str, Tool] = {}
        self._listed: tuple[Tool, ...] = ()
        self._standings: Mapping[str, Standing] = {}
        self._skipped: Sequence[str] = ()
        self._decisions: dict[str, Decision] = {}
        self._search: ToolSearch | None = None  # built when first asked
        self._listeners: Listeners[[]] = Listeners("changes of the tool list")
        self.gate.subscribe(self._list)

    def set_plugins(
        self,
        manifests: Iterable[PluginManifest],
        standings: Mapping[str, Standing] = MappingProxyType({}),
        skipped: Sequence[str] = (),
    ) -> None:
        """Serve the tools of these plugins, instead of any other plugin tools.

        Args:
            manifests: The plugins.
            standings: What the user has said of them, by name; by default, that they named them.
            skipped: Why others are not served, for those who look for their tools.
        """
        self._standings = standings
        self._skipped = skipped
        self._plugin_tools = [
            PluginTool(self._pages, manifest, tool, message_limit=self._message_limit)
            for manifest in manifests
            for tool in manifest.tools
        ]
        for tool in self._plugin_tools:
            if (name := tool.listing.name) in self._python_tools:
                logger.error(
                    "The plugin %s and Python both have a tool %s; the plugin's is left out",
                    tool.listing.owner,
                    name,
                )
        self._list()

    def set_remote(self, tools: "Iterable[RemoteTool]") -> None:
        """Serve these tools of a fleet's workers, instead of any other plugin tools.

        A name that a Python tool has stays that tool's, because workers come and go.
        """
        self._plugin_tools = remote = tuple(tools)
        self._remote = {tool.listing.name: tool for tool in remote}
        for name, own in self._python_tools.items():
            if name in self._remote and self._remote[name].beside(own) is own:
                logger.warning("Workers have a tool %s too; this server's is called", name)
        self._list()

    def set_tools(self, tools: Iterable[Tool]) -> None:
        """Serve these tools as well, instead of any that were set before.

        Raises:
            ConfigError: Two tools have the same name; those that were set before are kept.
        """
        served = {each.listing.name: each for each in self._plugin_tools}
        served = {name: each for name, each in served.items() if name not in self._remote}
        others: dict[str, Tool] = {}
        for tool in tools:
            name, owner = tool.listing.name, tool.listing.owner
            other = served.get(name) or others.get(name) or self._built_in.get(name)
            if other is not None:
                raise same_name(name, f"one from {other.listing.owner}, one from {owner}")
            others[name] = tool
        self._python_tools = others
        self._list()

    def set_registered(
        self, tools: Sequence[OtherwiseNamed], may_return: Callable[[str], bool]
    ) -> None:
        """Serve these tools that pages have registered themselves, instead of any earlier ones.

        A name that another tool has stays that tool's.

        Args:
            tools: The tools.
            may_return: Returns whether a page that loads may register a tool of this name again.
        """
        self._registered = tools
        self._may_return = may_return
        self._list()

    @property
    def own_names(self) -> Collection[str]:
        """The names of all tools but those that pages have registered themselves."""
        built_in = self._built_in.keys()
        named = (
            {each.listing.name for each in self._plugin_tools}
            | self._python_tools.keys()
            | built_in
        )
        return named.union(*(each.other_names for each in self._plugin_tools))

    def _list(self) -> None:
        before = [_seen(tool.listing) for tool in self.tools]
        python_tools = {
            name: self._remote[name].beside(tool) if name in self._remote else tool
            for name, tool in self._python_tools.items()
        }
        in_pages = [tool for tool in self._plugin_tools if tool.listing.name not in python_tools]
        needs_tabs = any(tool.listing.needs_tab for tool in in_pages)  # a worker's may not
        is_needed = needs_tabs or self._registered is not None or self._has_hands
        built_in = self._built_in.values() if is_needed else ()
        tools: list[Tool] = [*in_pages, *built_in, *python_tools.values()]
        if self._registered:
            ours = self.own_names
            registered = [each for each in self._registered if each.listing.name not in ours]
            in_pages = [*registered, *in_pages]  # if two share another name, the plugin's wins
            tools += registered
        tools.sort(key=lambda each: each.listing.name)
        self._tools = {tool.listing.name: tool for tool in tools}
        self._decisions = {
            name: self.gate.decide(self.gated(tool.listing)) for name, tool in self._tools.items()
        }
        self._listed = tuple(
            tool for tool in tools if self._decisions[tool.listing.name].permission != "off"
        )
        self._search = None
        self._by_other_names = {name: tool for tool in in_pages for name in tool.other_names}
        for name in self._by_other_names.keys() & python_tools.keys():
            logger.warning(
                "%s is a Python tool; call the plugin %s's tool as %s",
                name,
                self._by_other_names[name].listing.owner,
                self._by_other_names[name].listing.name,
            )
        if [_seen(tool.listing) for tool in self.tools] != before:
            self._listeners.notify()

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools that clients see change; return the unsubscriber."""
        return self._listeners.subscribe(listener)

    def report_unknown_rules(self) -> list[str]:
        """Return a text for each permission that names neither a served tool nor its owner."""
        gated = (self.gated(tool.listing) for tool in self._tools.values())
        return consent.report_unknown(self.gate.rules, gated)

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
        """Return a tool that is not turned off, by a name that `get` knows.

        Raises:
            CallRefusedError: There is no such tool; the text suggests similar names. Or it is
                turned off.
            ChainError: There is nothing that has tools.
        """
        tool = self.get(name)
        if tool is None:
            raise self.unknown(name)
        decision = self._decisions[tool.listing.name]
        if decision.permission == "off":
            rule = self.gated(tool.listing).rule
            raise failures.turned_off(tool.listing.name, rule, decision)
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
        if any(
            tool.listing.owner == owner and tool.listing.needs_tab for tool in self._plugin_tools
        ):
            find = self._status or self._pages.tabs.status
            return find(owner)
        return None

    def is_python(self, name: str) -> bool:
        """Return whether a tool is a Python tool of this process."""
        return name in self._python_tools

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """Return the JSON Schema of a tool's arguments; None if there is no such tool."""
        tool = self.get(name)
        return None if tool is None else tool.listing.input_schema

    def gated(self, listing: Listing) -> GatedTool:
        """Return what the decision about a tool's calls depends on."""
        return listing.gated(self._standing(listing))

    def unknown(self, name: str) -> CallError:
        """Return the error for a name that no tool has, with similar names."""
        if self._may_return(name):
            return failures.page_tool_gone()
        near = nearest(name, self._tools)
        return self._why_empty() or failures.unknown_tool(name, near, self._skipped)

    def _standing(self, listing: Listing) -> Standing:
        if listing.is_of_page:
            return "page"
        if listing.owner == HANDS:
            return "reviewed"  # they are ours; but what acts on any page is asked about
        return self._standings.get(listing.owner, "named")


def _seen(listing: Listing) -> Listing:
    """Return the parts of a listing that are in the list of tools."""
    output = listing.output_schema if listing.promises_object else None
    return replace(listing, owner="", summary="", group="", icon="", output_schema=output)
