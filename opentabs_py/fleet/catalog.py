"""The tools that a fleet's workers have, read once for each set of them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio
from anyio.abc import TaskGroup

from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.listing import Listing
from opentabs_py.core.fleet.messages import (
    Announcement,
    ToEndpoint,
    ToolJson,
    Tools,
    ToolsRequest,
    digest_of,
)
from opentabs_py.core.limits import Limits
from opentabs_py.core.sites.match_patterns import MatchPattern, parse
from opentabs_py.errors import ChainError
from opentabs_py.fleet.requests import NotDeliveredError

logger = logging.getLogger(__name__)

KEPT_FOR: Final = 30.0  # s
LOOK_EVERY: Final = 1.0  # s
AGAIN_AFTER: Final = 1.0  # s; if a worker did not send the tools that it announces


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool that workers have.

    Attributes:
        digest: The build of the plugin, or of the module, that it is of.
        listing: What clients see of it.
        limits: Its own time limits; None for the endpoint's.
    """

    digest: str
    listing: Listing
    limits: Limits | None


class ToolsReader(Protocol):
    """The part of `WorkerRequests` that reads tools."""

    async def request(self, worker: Announcement, message: ToolsRequest) -> ToEndpoint:
        """Send a request to a worker, and return its last answer."""
        ...


class Catalog:
    """The tools of all workers.

    Where workers serve different builds of a plugin, its tools are those of the build that most of
    them serve, and of several, of the one whose worker was started last. The tools of a plugin that
    no worker serves now are kept for a while: usually one is just restarting. If two plugins or
    modules have a tool of the same name, it is that of the one that is served now, and of several,
    of the first in the alphabet: clients refuse a list with the same name twice.

    Args:
        requests: Sends requests to the workers.
        workers: Returns the workers.
    """

    def __init__(
        self, requests: ToolsReader, workers: Callable[[], Sequence[Announcement]]
    ) -> None:
        self._requests = requests
        self._workers = workers
        self._read: dict[str, Tools] = {}
        self._patterns: dict[str, Sequence[MatchPattern]] = {}  # of their pages
        self._reading: set[str] = set()
        self._not_before: dict[tuple[str, str], float] = {}  # by digest and worker
        self._shown: dict[str, str] = {}
        self._served_at: dict[str, float] = {}
        self._entries: Sequence[Entry] = ()
        self._stale = anyio.Event()
        self._changes: Listeners[[]] = Listeners("changes of the fleet's tools")

    @property
    def entries(self) -> Sequence[Entry]:
        """The tools, in no particular order; the same object until they change."""
        return self._entries

    @property
    def is_read(self) -> bool:
        """Whether the tools of every known worker have been read."""
        return not (self._reading or self._stale.is_set())

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools change; return the unsubscriber."""
        return self._changes.subscribe(listener)

    def serving(self, worker: Announcement, url: str) -> list[str]:
        """Return the plugins of a worker that work in a page, as far as is known."""
        return [
            owner
            for owner, each in worker.served.items()
            if any(pattern.matches(url) for pattern in self._patterns.get(each.digest, ()))
        ]

    def refresh(self) -> None:
        """Handle a change of the workers soon, once for all that change until then."""
        self._stale.set()

    async def run(self) -> None:
        """Follow the workers until cancelled."""
        async with anyio.create_task_group() as tasks:
            while True:
                self._update(tasks)
                with anyio.move_on_after(LOOK_EVERY):  # for tools that are kept no longer
                    await self._stale.wait()

    def _update(self, tasks: TaskGroup) -> None:
        self._stale = anyio.Event()
        now = anyio.current_time()
        self._not_before = {each: at for each, at in self._not_before.items() if at > now}
        for worker in self._workers():
            for owner, served in worker.served.items():
                digest = served.digest
                is_known = digest in self._read or digest in self._reading
                if not is_known and (digest, worker.instance) not in self._not_before:
                    self._reading.add(digest)
                    tasks.start_soon(self._read_tools, worker, owner, digest)
        self._show()

    async def _read_tools(self, worker: Announcement, owner: str, digest: str) -> None:
        try:
            answer = await self._requests.request(worker, ToolsRequest(owner=owner))
        except (ChainError, NotDeliveredError) as error:
            logger.debug("The tools of %s were not read from %s: %s", owner, worker.name, error)
        else:
            if isinstance(answer, Tools):
                self._keep(answer, worker)
        self._reading.discard(digest)
        if digest not in self._read:
            self._not_before[digest, worker.instance] = anyio.current_time() + AGAIN_AFTER
        self.refresh()  # if they were not read, another worker may have them

    def _keep(self, tools: Tools, worker: Announcement) -> None:
        digest = digest_of(tools)
        self._read[digest], self._patterns[digest] = tools, ()
        try:
            self._patterns[digest] = [*map(parse, tools.patterns)]
        except ValueError as error:
            logger.warning(
                "The worker %s has a URL pattern that is not valid: %s", worker.name, error
            )

    def _show(self) -> None:
        """Use the builds that most workers serve."""
        builds: dict[str, dict[str, list[float]]] = {}
        for worker in self._workers():
            for owner, served in worker.served.items():
                if served.digest in self._read:
                    of_owner = builds.setdefault(owner, {})
                    of_owner.setdefault(served.digest, []).append(worker.started)
        shown = {
            owner: max(digests, key=lambda digest: (len(digests[digest]), max(digests[digest])))
            for owner, digests in sorted(builds.items())
        }
        now = anyio.current_time()
        self._served_at.update(dict.fromkeys(shown, now))
        for owner, digest in self._shown.items():
            if owner not in shown and now < self._served_at[owner] + KEPT_FOR:
                shown[owner] = digest
        in_use = {each.digest for worker in self._workers() for each in worker.served.values()}
        in_use.update(shown.values())
        for digest in self._read.keys() - in_use:
            del self._read[digest], self._patterns[digest]
        if [*shown.items()] == [*self._shown.items()]:  # in the same order
            return
        self._shown = shown
        self._entries = self._list(shown)
        self._changes.notify()

    def _list(self, shown: Mapping[str, str]) -> Sequence[Entry]:
        entries: dict[str, Entry] = {}
        for owner, digest in shown.items():
            needs_tab = bool(self._read[digest].patterns)
            for tool in self._read[digest].tools:
                entry = _entry(owner, digest, tool, needs_tab=needs_tab)
                first = entries.setdefault(tool.name, entry)
                if first is not entry:
                    logger.warning(
                        "Workers have two tools named %s: %s's is listed, %s's is left out",
                        tool.name,
                        first.listing.owner,
                        owner,
                    )
        return [*entries.values()]


def _entry(owner: str, digest: str, tool: ToolJson, *, needs_tab: bool) -> Entry:
    limits = None
    if tool.idle is not None and tool.ceiling is not None:
        limits = Limits(idle=tool.idle, ceiling=tool.ceiling)
    listing = Listing(
        name=tool.name,
        owner=owner,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=tool.annotations,
        summary=tool.summary,
        group=tool.group,
        needs_tab=needs_tab,
    )
    return Entry(digest, listing, limits)
