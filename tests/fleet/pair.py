"""A worker and an endpoint that are connected within this process."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio

from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.listing import Listing
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.core.fleet.channel import PIECE
from opentabs_py.core.fleet.messages import Announcement, CallRequest, ToEndpoint, ToWorker
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.core.limits import Limits
from opentabs_py.core.protocol import Model
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.requests import WorkerRequests
from opentabs_py.fleet.session import Session
from opentabs_py.fleet.worker import FleetWorker
from tests.waiting import PATIENT, until_all_wait

MOST = 2 * PIECE  # bytes
ENDPOINT = "e" * 16


class Wire:
    """A connection that both sides share; what it does not lose arrives in order.

    Attributes:
        is_up: Whether anything is delivered.
        looks: How often somebody has asked whether it is.
        loses: The beginning of the subjects of which it delivers nothing.
        is_flushed: Whether somebody has waited until all was sent.
        published: The subjects and the data that were published.
    """

    version = "1"
    subjects = Subjects("test")
    options = FleetOptions("nats://127.0.0.1:1")

    def __init__(self) -> None:
        self.relinked: Listeners[[]] = Listeners("reconnects")
        self.is_up = True
        self.looks = 0
        self.is_flushed = False
        self.loses = "nothing"
        self.published: list[tuple[str, bytes]] = []
        self._handlers: list[tuple[str, Callable[[Received], None]]] = []
        self._on_the_way = self._arrived = 0

    @property
    def connected(self) -> bool:
        self.looks += 1
        return self.is_up

    async def subscribe(self, subject: str, handle: Callable[[Received], None]) -> None:
        self._handlers.append((subject.removesuffix(">"), handle))

    def stop_listening(self, subject: str) -> None:
        """End a side: from now on, each message to it is reported as undelivered."""
        self._handlers = [each for each in self._handlers if each[0] != f"{subject}."]

    def publish(self, subject: str, data: bytes = b"", reply: str = "") -> bool:
        if not self.is_up:
            return False
        self.published.append((subject, data))
        if subject.startswith(self.loses):
            return True
        message = Received(subject, data, absent=False, reply=reply)
        if not self._deliver(message) and reply:
            self._deliver(Received(reply, b"", absent=True, reply=""))
        return True

    def _deliver(self, message: Received) -> bool:
        """Return whether there is a listener."""
        found = [handle for start, handle in self._handlers if message.subject.startswith(start)]
        for handle in found:
            self._on_the_way += 1
            asyncio.get_running_loop().call_soon(self._arrive, handle, message)
        return bool(found)

    def _arrive(self, handle: Callable[[Received], None], message: Received) -> None:
        self._on_the_way -= 1
        self._arrived += 1
        handle(message)

    async def settle(self) -> None:
        """Wait until everything that was published has arrived, and every task waits."""
        arrived = -1
        while self._on_the_way or arrived != self._arrived:
            arrived = self._arrived
            await until_all_wait()

    async def flush(self) -> None:
        await anyio.lowlevel.checkpoint()
        self.is_flushed = True


@dataclass(frozen=True)
class FakeTool:
    """A tool as a worker announces it."""

    listing: Listing
    limits: Limits | None = None


def a_tool(name: str, owner: str, *, limits: Limits | None = None, **more: Any) -> FakeTool:
    return FakeTool(Listing(name, owner, "", "", {"type": "object"}, **more), limits)


class FakeSession:
    """A session in which each call runs until the test ends it, or it is cancelled.

    Attributes:
        tools: What it has.
        called: A call has begun.
        cancelled: One was cancelled.
        calls: The name and the options of each call.
        gone: The clients that have disconnected.
        with_tabs: The clients that have opened tabs.
        tabs: In how many tabs each plugin works.
    """

    browsers: Sequence[str] = ()
    restarts = 0

    def __init__(self) -> None:
        self.registry = self.caller = self
        self.tools: Sequence[FakeTool] = ()
        self.called = anyio.Event()
        self.cancelled = anyio.Event()
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.gone: list[str] = []
        self.with_tabs: set[str] = set()
        self.tabs: dict[str, int] = {}
        self._tabs_changed = anyio.Event()
        self._changes: Listeners[[]] = Listeners("changes of tools")
        self._outcomes: list[asyncio.Future[Any]] = []

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        return self._changes.subscribe(listener)

    def serve(self, *tools: FakeTool) -> None:
        """Replace the tools."""
        self.tools = tools
        self._changes.notify()

    def ready(self) -> Mapping[str, int]:
        return dict(self.tabs)

    def changed(self) -> anyio.Event:
        return self._tabs_changed

    def open_tab(self, plugin: str) -> None:
        """Make a plugin ready in one more tab."""
        self.tabs[plugin] = self.tabs.get(plugin, 0) + 1
        changed, self._tabs_changed = self._tabs_changed, anyio.Event()
        changed.set()

    def patterns(self, owner: str) -> Sequence[str]:
        return [f"https://{owner}.example/*"]

    def has_tabs(self, client: str) -> bool:
        return client in self.with_tabs

    def handle_client_gone(self, client: str) -> None:
        self.gone.append(client)

    def end(self, outcome: Any = None) -> None:
        """End the oldest call, with a value or an error."""
        future = self._outcomes.pop(0)
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    async def call(self, tool: str, _arguments: Mapping[str, Any], /, **options: Any) -> Any:
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._outcomes.append(outcome)
        self.calls.append((tool, options))
        self.called.set()
        try:
            return await outcome
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


class Pair:
    """A worker named w, and an endpoint that asks it."""

    def __init__(self, *, max_calls: int = 8) -> None:
        self.wire = Wire()
        link = cast("NatsLink", self.wire)
        self.identity = Identity("w", 1, max_calls=max_calls)
        self.subject = self.wire.subjects.worker("w", self.identity.instance)
        self.session = FakeSession()
        session = cast("Session", self.session)
        self.worker = FleetWorker(link, self.identity, session, longest_message=MOST)
        self.lost: list[str] = []
        self.requests = WorkerRequests(
            link, ENDPOINT, longest_message=MOST, on_lost=self.lost.append
        )
        self.announced: Announcement = self.identity.announce("serving", [])

    async def request(
        self, message: Model, handle: Callable[[ToEndpoint], None] = lambda _: None
    ) -> ToEndpoint:
        with anyio.fail_after(PATIENT):
            return await self.requests.request(self.announced, cast("ToWorker", message), handle)

    async def settle(self) -> None:
        """Wait until everything waits for the test."""
        await self.wire.settle()

    def announcements(self) -> list[Announcement]:
        """Return what the worker has announced."""
        return [
            Announcement.model_validate_json(data)
            for subject, data in self.wire.published
            if subject == self.wire.subjects.workers
        ]


@asynccontextmanager
async def a_pair(*, max_calls: int = 8) -> AsyncGenerator[Pair]:
    pair = Pair(max_calls=max_calls)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pair.worker.run)
        await pair.requests.start()
        await pair.settle()
        yield pair
        pair.worker.drain()  # which ends it once it has forgotten all calls


def a_call(
    arguments: dict[str, Any] | None = None, tool: str = "chat_send", **more: Any
) -> CallRequest:
    return CallRequest(tool=tool, arguments=arguments or {}, idle=1, ceiling=2, **more)
