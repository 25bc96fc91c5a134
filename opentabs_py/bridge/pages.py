"""The pages of all browsers of a server, as its tools and its clients see them."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final

import anyio

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.connection import Socket
from opentabs_py.bridge.reception import serve_connection
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.changes import Changes
from opentabs_py.calling.clock import Clock
from opentabs_py.core import protocol
from opentabs_py.core.tabs.browsers import JoinedTabs, choose
from opentabs_py.core.tabs.numbers import browser_of
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tabs.selection import Tabs, Target, Wait
from opentabs_py.errors import ChainError

logger = logging.getLogger(__name__)

REMEMBERED: Final = 1000  # how many clients' last browsers are known, one for each plugin

_Key = tuple[SessionKey | None, str]  # a client, and the plugin that it used


async def ensure_any_browser(bridges: Sequence[Bridge]) -> None:
    """Launch the browsers that were closed, if they may be launched again.

    Raises:
        ChainError: No browser is there.
    """
    errors: list[ChainError] = []
    for bridge in bridges:
        try:
            await bridge.ensure_browser()
        except ChainError as error:
            logger.warning("The browser %s did not start: %s", bridge.name, error)
            errors.append(error)
    if errors and len(errors) == len(bridges):
        raise errors[0]


class Pages:
    """All browsers of a server; sends each call to the right one.

    Args:
        bridges: The browsers' links, each at its index; empty when Python tools are called outside
            a session.
        clock: The clock of the calls' timers.
        join: For browsers in which the user has loaded the extension: creates the link to one
            more, with this name and index. Without it, each browser has a secret of its own.
        interchangeable: Whether any of the browsers may take any call; the one with the fewest
            calls does.

    Attributes:
        bridges: The browsers' links.
        clock: The clock of the calls' timers.
        tabs: The state of the tabs.
        running_calls: How many calls run in each browser.
        ended_calls: How many calls have ended in each.
        avoided: The browsers, by index, that are used only if no other can take a call.
    """

    def __init__(
        self,
        bridges: Sequence[Bridge],
        *,
        clock: Clock,
        join: Callable[[str, int], Bridge] | None = None,
        interchangeable: bool = False,
    ) -> None:
        self.bridges: list[Bridge] = []
        self.clock = clock
        self._all_tabs: list[Tabs] = []
        self.tabs = JoinedTabs(self._all_tabs)
        self.running_calls: list[int] = []
        self.ended_calls: list[int] = []
        self.avoided: set[int] = set()
        self._join = join
        self._interchangeable = interchangeable
        self._by_id: dict[str, Bridge] = {}
        self._last: OrderedDict[_Key, int] = OrderedDict()  # of clients that have a session
        self._changes = Changes()
        for bridge in bridges:
            self._add(bridge)

    @property
    def origin(self) -> str:
        """The Origin of the extensions, `chrome-extension://ID`."""
        return self.bridges[0].origin

    @property
    def connected(self) -> bool:
        """Whether any extension has said hello and is still connected."""
        return any(bridge.connected for bridge in self.bridges)

    @property
    def names(self) -> Mapping[int, str]:
        """The names of the browsers, by the number that their tabs' numbers begin with."""
        return {bridge.number: bridge.name for bridge in self.bridges}

    def index_of(self, tab_id: int) -> int:
        """Return the index of the browser that has a tab, if any of them has."""
        return browser_of(tab_id) - self.bridges[0].number

    def preferred_browser(self, client: SessionKey | None) -> int | None:
        """Return the index of the browser to use for a client if nothing else decides.

        It is the one that the client used last, or None if there is none; of interchangeable
        browsers, it is the one with the fewest calls, whoever asks.
        """
        if len(self.bridges) == 1:
            return 0
        if self._interchangeable:
            return min(range(len(self.bridges)), key=self._rank)
        used = (index for (by, _), index in reversed(self._last.items()) if by == client)
        return next(used, None)

    def gone_browsers(self) -> set[int]:
        """Return the indexes of the browsers that are not there, and that no call brings back.

        A browser that the user has closed, or one from which they have removed the extension, stays
        in the list: they may come back.
        """
        now = anyio.current_time()
        return {
            index
            for index, bridge in enumerate(self.bridges)
            if bridge.relaunch_browser is None
            and isinstance(bridge.tabs.why_disconnected(now), ChainError)
        }

    @property
    def plugins(self) -> list[str]:
        """The names of the plugins that the pages receive."""
        return [plugin.name for plugin in self.bridges[0].plugin_sync.plugins]

    @property
    def plugin_problems(self) -> Sequence[protocol.PluginProblem]:
        """The plugins that could not be injected, and where."""
        return [problem for bridge in self.bridges for problem in bridge.plugin_sync.problems]

    async def call(self, target: Target, tool: str, call: ToolCall) -> Any:
        """Run a plugin's tool in a page and return its JSON value; see `Bridge.call`.

        Raises:
            ChainError: As for one browser, or several could take the call.
        """
        index = 0 if len(self.bridges) == 1 else await self._choose(target)
        if target.client is not None and not self._interchangeable:
            self._remember(target, index)
        self.running_calls[index] += 1
        try:
            return await self.bridges[index].call(target, tool, call)
        finally:
            self.running_calls[index] -= 1
            self.ended_calls[index] += 1

    def find_document(self, target: Target) -> protocol.DocumentState | None:
        """Return the document in which a call would run now; None if that is not known."""
        if len(self.bridges) == 1:
            return self.bridges[0].find_document(target)
        last = self._last.get((target.client, target.plugin))
        choice = self._choice(target, last, anyio.current_time())
        return self.bridges[choice].find_document(target) if isinstance(choice, int) else None

    async def wait_reconnected(self) -> None:
        """Wait for an extension that has just disconnected.

        Raises:
            ChainError: No extension is connected.
        """
        if (error := await self._changes.decide(self.tabs.why_disconnected)) is not None:
            raise error

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of connection, tabs or plugins."""
        return self._changes.next()

    def admit(self, subprotocols: Sequence[str]) -> Callable[[Socket], Awaitable[None]] | None:
        """Return what serves an extension's connection; None if it sends no secret of ours."""
        if self._join is not None:
            return self._serve_any if self.bridges[0].accepts(subprotocols) else None
        return next((each.serve for each in self.bridges if each.accepts(subprotocols)), None)

    def knows(self, secret: str) -> bool:
        """Return whether a secret is that of an extension of ours."""
        return any(bridge.knows(secret) for bridge in self.bridges)

    async def _serve_any(self, socket: Socket) -> None:
        limit = self.bridges[0].message_limit
        await serve_connection(socket, self._find_bridge, message_limit=limit)

    def _find_bridge(self, hello: protocol.HelloParams) -> Bridge:
        """Return the link to a browser, by the id that its extension keeps."""
        bridge = self._by_id.get(hello.browser_id)
        if bridge is not None:
            return bridge
        assert self._join is not None
        name = f"browser-{hello.browser_id[:4]}"  # the same after each restart of the server
        if not self._by_id:
            bridge = self.bridges[0]
            bridge.name = name
        else:
            bridge = self._join(name, len(self.bridges))
            bridge.plugin_sync.plugins = self.bridges[0].plugin_sync.plugins
            self._add(bridge)
        self._by_id[hello.browser_id] = bridge
        return bridge

    def _add(self, bridge: Bridge) -> None:
        bridge.on_change = self._changes.notify
        self.bridges.append(bridge)
        self._all_tabs.append(bridge.tabs)
        bridge.tabs.owners = self.tabs.owners
        self.running_calls.append(0)
        self.ended_calls.append(0)

    async def _choose(self, target: Target) -> int:
        last = self._last.get((target.client, target.plugin))
        if last is not None and target.tab_id is None:
            # Another's pages may be those of another person.
            await self.bridges[last].ensure_browser()
        choose_now = partial(self._choice, target, last)
        choice: int | ChainError = await self._changes.decide(choose_now)
        if isinstance(choice, int) and self.bridges[choice].tabs.status(target.plugin) != "ready":
            # A page that was just opened, or a user who just signed in, may be unknown; and a
            # browser that was closed opens its pages again.
            if target.tab_id is None and not (self._interchangeable and self.connected):
                await ensure_any_browser(self.bridges)
            async with anyio.create_task_group() as tasks:
                for bridge in self.bridges:
                    tasks.start_soon(bridge.tab_requests.query, target.plugin)
            choice = await self._changes.decide(choose_now)
        if isinstance(choice, int):
            return choice
        raise choice

    def _choice(self, target: Target, last: int | None, now: float) -> int | Wait | ChainError:
        ranks = [*map(self._rank, range(len(self.bridges)))] if self._interchangeable else None
        return choose(self.bridges, target, last, now, ranks)

    def _rank(self, index: int) -> tuple[float, int]:
        return inf if index in self.avoided else self.running_calls[index], self.ended_calls[index]

    def _remember(self, target: Target, index: int) -> None:
        key = target.client, target.plugin
        self._last[key] = index
        self._last.move_to_end(key)
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
