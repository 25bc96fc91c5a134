"""Announces a worker to its fleet: what it serves, and how much of it is used."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import anyio

from opentabs_py.calling.tool import Tool
from opentabs_py.core.fleet.messages import ServedOwner, State, ToolJson, Tools, digest_of, encode
from opentabs_py.core.plugin_names import RESERVED_TOOLS
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink
from opentabs_py.fleet.session import Session

ANNOUNCE_EVERY: Final = 2.0  # s
ANNOUNCE_AFTER: Final = 0.05  # s after a change, in which more changes may follow


class Announcer:
    """Announces a worker whenever it changes, and every two seconds.

    Args:
        link: The connection.
        identity: Who it is.
        session: Has the tools.
        state: Returns whether it takes calls.
        running: Returns how many calls run in it, by endpoint.

    Attributes:
        counts: Its `calls`, `failures` and `memory`, as in an announcement.
    """

    def __init__(
        self,
        link: NatsLink,
        identity: Identity,
        session: Session,
        *,
        state: Callable[[], State],
        running: Callable[[], Mapping[str, int]],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._link = link
        self._identity = identity
        self._session = session
        self._state = state
        self._running = running
        self._changed = anyio.Event()
        self._digests: dict[str, tuple[Sequence[Tool], str]] = {}

    @property
    def owners(self) -> Sequence[str]:
        """The plugins and modules whose tools it has."""
        return [*self._by_owner()]

    async def run(self) -> None:
        """Announce the worker until cancelled."""
        unsubscribe = self._session.registry.subscribe(self.notify)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow_tabs)
                while True:
                    self.announce()
                    self._changed = anyio.Event()
                    with anyio.move_on_after(ANNOUNCE_EVERY):
                        await self._changed.wait()
                        await anyio.sleep(ANNOUNCE_AFTER)
        finally:
            unsubscribe()

    def notify(self) -> None:
        """Announce a change soon."""
        self._changed.set()

    def announce(self, state: State | None = None) -> None:
        """Announce the worker now.

        Args:
            state: The state to announce instead of the current one.
        """
        ready = self._session.ready()
        served = {
            owner: ServedOwner(digest=self._digest(owner, tools), ready=_ready(owner, tools, ready))
            for owner, tools in self._by_owner().items()
        }
        announcement = self._identity.announce(
            state or self._state(),
            self._session.browsers,
            running=self._running(),
            served=served,
            counts={**self.counts, "restarts": self._session.restarts},
        )
        self._link.publish(self._link.subjects.workers, encode(announcement))

    def describe(self, owner: str) -> Tools:
        """Return the tools of a plugin or a module; none if it has no such."""
        return self._describe(owner, self._by_owner().get(owner, []))

    def _by_owner(self) -> dict[str, list[Tool]]:
        tools: dict[str, list[Tool]] = {}
        for tool in self._session.registry.tools:
            if tool.listing.name not in RESERVED_TOOLS:  # endpoints have these themselves
                tools.setdefault(tool.listing.owner, []).append(tool)
        return tools

    def _digest(self, owner: str, tools: Sequence[Tool]) -> str:
        known, digest = self._digests.get(owner, ((), ""))
        if len(known) != len(tools) or any(a is not b for a, b in zip(known, tools, strict=True)):
            digest = digest_of(self._describe(owner, tools))
            self._digests[owner] = (tools, digest)
        return digest

    def _describe(self, owner: str, tools: Sequence[Tool]) -> Tools:
        return Tools(
            tools=[_tool_json(tool) for tool in tools], patterns=[*self._session.patterns(owner)]
        )

    async def _follow_tabs(self) -> None:
        before: Mapping[str, int] = {}
        while True:
            changed = self._session.changed()
            if (now := self._session.ready()) != before:
                before = now
                self.notify()
            await changed.wait()


def _ready(owner: str, tools: Sequence[Tool], ready: Mapping[str, int]) -> int | None:
    return ready.get(owner, 0) if tools[0].listing.needs_tab else None


def _tool_json(tool: Tool) -> ToolJson:
    listing, limits = tool.listing, tool.limits
    return ToolJson(
        name=listing.name,
        title=listing.title,
        description=listing.description,
        input_schema=listing.input_schema,
        output_schema=listing.output_schema,
        annotations=listing.annotations,
        summary=listing.summary,
        group=listing.group,
        idle=None if limits is None else limits.idle,
        ceiling=None if limits is None else limits.ceiling,
    )
