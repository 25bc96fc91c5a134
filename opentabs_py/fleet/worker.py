"""A worker: makes the calls of a fleet's endpoints with its own tools.

The calls' timers and their dispatch are those of the session, beside its browsers.
"""

import logging
import os
import secrets
import socket
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from pydantic_core import PydanticSerializationError

from opentabs_py.calling.clock import wall_clock
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.tool import CallClient, Followed, Tool
from opentabs_py.core.fleet.channel import Packet
from opentabs_py.core.fleet.liveness import Liveness
from opentabs_py.core.fleet.messages import (
    FLEET_VERSION,
    Announcement,
    Busy,
    CallAsk,
    Cancel,
    Done,
    LeaveAsk,
    Logs,
    Progress,
    Sent,
    Served,
    State,
    ToolJson,
    Tools,
    ToolsAsk,
    digest_of,
    encode,
    read_for_worker,
)
from opentabs_py.core.fleet.subjects import caller_of
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import OURSELVES, TABS_OPEN
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallError, ProtocolError
from opentabs_py.fleet.channels import NatsChannel
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.outcomes import failed, returned
from opentabs_py.fleet.trace_context import within_trace

logger = logging.getLogger(__name__)

ANNOUNCE_EVERY: Final = 2.0  # s
ANNOUNCE_AFTER: Final = 0.05  # s after a change, in which more changes may follow
LOOK_EVERY: Final = 0.5  # s; for endpoints that have gone
REMEMBERED: Final = 100_000  # ids of calls that have ended, which must not run again
# Bytes of reports that an endpoint may leave unread before they are dropped; a result never is.
MOST_UNREAD: Final = 64 * 1024 * 1024


class Caller(Protocol):
    """The tools of a session: a `ToolRegistry`."""

    @property
    def tools(self) -> Sequence[Tool]:
        """All tools."""
        ...

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call a function whenever the tools change; return the unsubscriber."""
        ...

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        /,
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
        client: CallClient | None = None,
        on_record: Callable[[CallRecord], None] | None = None,
    ) -> Any:
        """Call a tool and return its value."""
        ...


class Session(Protocol):
    """What a worker needs of the session whose tools it calls."""

    @property
    def caller(self) -> Caller:
        """Calls the tools."""
        ...

    @property
    def browsers(self) -> Sequence[str]:
        """The names of its browsers."""
        ...

    def ready(self) -> Mapping[str, int]:
        """Return in how many tabs each plugin works now."""
        ...

    def patterns(self, owner: str) -> Sequence[str]:
        """Return the URL patterns of a plugin's pages."""
        ...

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of the tabs."""
        ...

    def leave(self, client: str) -> None:
        """Handle the end of a client, which may have opened tabs."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is.

    Attributes:
        name: Its name in the fleet.
        version: The version of this package.
        number: That of its first browser among those of the fleet.
        labels: What endpoints may choose it by.
        max_calls: How many calls may run in it at once.
        instance: This run of it.
        started: When it started, in seconds since the epoch.
    """

    name: str
    version: str
    number: int = 0
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    max_calls: int = 8
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    started: float = field(default_factory=wall_clock)

    def announce(
        self,
        state: State,
        browsers: Sequence[str],
        *,
        running: Mapping[str, int] = MappingProxyType({}),
        served: Mapping[str, Served] = MappingProxyType({}),
        counts: Mapping[str, int] = MappingProxyType({}),
    ) -> Announcement:
        """Return what it announces.

        Args:
            state: Whether it takes calls.
            browsers: The names of its browsers.
            running: The calls that run, by endpoint.
            served: Its plugins and modules.
            counts: Its `calls`, `failures`, `restarts` and `memory`, as in an announcement.
        """
        return Announcement(
            version=FLEET_VERSION,
            opentabs=self.version,
            name=self.name,
            instance=self.instance,
            host=socket.gethostname() or "localhost",
            pid=os.getpid(),
            started=self.started,
            state=state,
            number=self.number,
            browsers=[*browsers],
            labels=dict(self.labels),
            max_calls=self.max_calls,
            running=dict(running),
            served=dict(served),
            calls=counts.get("calls", 0),
            failures=counts.get("failures", 0),
            restarts=counts.get("restarts", 0),
            memory=counts.get("memory", 0),
        )


class FleetWorker:
    """Makes the calls that endpoints ask for.

    Args:
        link: The connection.
        identity: Who it is.
        session: Has the tools.
        most: The longest message to accept, in bytes.
    """

    def __init__(self, link: NatsLink, identity: Identity, session: Session, *, most: int) -> None:
        self.identity = identity
        self._link = link
        self._session = session
        self._most = most
        self._calls: dict[str, _Call] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._endpoints: dict[str, Liveness] = {}
        self._clients: dict[str, set[str]] = {}
        self._counts: Counter[str] = Counter()
        self._changed = anyio.Event()
        self._idle = anyio.Event()
        self._digests: dict[str, tuple[Sequence[Tool], str]] = {}
        self._serves = False
        self._draining = anyio.Event()
        self._subject = link.subjects.worker(identity.name, identity.instance)
        self._tasks: TaskGroup

    @property
    def owners(self) -> Sequence[str]:
        """The plugins and modules whose tools it has."""
        return [*self._by_owner()]

    @property
    def running(self) -> int:
        """How many calls run in it now."""
        return sum(call.runs for call in self._calls.values())

    @property
    def calls(self) -> int:
        """How many calls have ended in it."""
        return self._counts["calls"]

    @property
    def connected(self) -> bool:
        """Whether it is connected to NATS now."""
        return self._link.connected

    @property
    def state(self) -> State:
        """Whether it takes calls."""
        if self._draining.is_set():
            return "draining"
        return "serving" if self._serves else "starting"

    async def run(self) -> None:
        """Take calls until it is drained; cancelled, it ends those that run."""
        link, subjects = self._link, self._link.subjects
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            unsubscribe = self._session.caller.subscribe(self._notify)
            end_relinks = link.relinked.subscribe(self._handle_relinked)
            try:
                await link.subscribe(f"{self._subject}.>", self._handle)
                self._serves = True
                await link.subscribe(subjects.who, lambda _: self._announce())
                tasks.start_soon(self._announce_changes)
                tasks.start_soon(self._follow_tabs)
                tasks.start_soon(self._look_for_gone_endpoints)
                await self._draining.wait()
                logger.info("Draining: %d calls run", self.running)
                while self._calls:
                    self._idle = anyio.Event()
                    await self._idle.wait()
            finally:
                unsubscribe()
                end_relinks()
                self._publish("leaving")
                with anyio.CancelScope(shield=True):
                    await link.flush()
                tasks.cancel_scope.cancel()

    @property
    def memory(self) -> int:
        """How much memory its processes had when that was measured last, in bytes."""
        return self._counts["memory"]

    def count_restart(self) -> None:
        """Record that a browser had gone and was relaunched."""
        self._counts["restarts"] += 1
        self._notify()

    def set_memory(self, memory: int) -> None:
        """Announce from now on how much memory its processes have, in bytes."""
        self._counts["memory"] = memory

    def drain(self) -> None:
        """Take no more calls, and return from `run` when those that run have ended."""
        self._draining.set()
        self._announce()

    # --- what it announces ---

    def _announce(self) -> None:
        self._publish(self.state)

    def _publish(self, state: State) -> None:
        ready = self._session.ready()
        served = {
            owner: Served(digest=self._digest(owner, tools), ready=self._ready(owner, tools, ready))
            for owner, tools in self._by_owner().items()
        }
        running = Counter(call.endpoint for call in self._calls.values() if call.runs)
        announcement = self.identity.announce(
            state,
            self._session.browsers,
            running=running,
            served=served,
            counts=self._counts,
        )
        self._link.publish(self._link.subjects.workers, encode(announcement))

    def _by_owner(self) -> dict[str, list[Tool]]:
        tools: dict[str, list[Tool]] = {}
        for tool in self._session.caller.tools:
            if tool.listing.owner != OURSELVES:  # endpoints have these themselves
                tools.setdefault(tool.listing.owner, []).append(tool)
        return tools

    @staticmethod
    def _ready(owner: str, tools: Sequence[Tool], ready: Mapping[str, int]) -> int | None:
        return ready.get(owner, 0) if tools[0].listing.needs_tab else None

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

    def _notify(self) -> None:
        self._changed.set()

    async def _announce_changes(self) -> None:
        while True:
            self._announce()
            self._changed = anyio.Event()
            with anyio.move_on_after(ANNOUNCE_EVERY):
                await self._changed.wait()
                await anyio.sleep(ANNOUNCE_AFTER)

    async def _follow_tabs(self) -> None:
        before: Mapping[str, int] = {}
        while True:
            changed = self._session.changed()
            if (now := self._session.ready()) != before:
                before = now
                self._notify()
            await changed.wait()

    # --- what arrives ---

    def _handle(self, message: Received) -> None:
        caller = caller_of(message.subject)
        if caller is not None and message.absent:
            if (liveness := self._endpoints.get(caller[0])) is not None:
                liveness.handle_absent(anyio.current_time())
            return
        if caller is not None:
            self._handle_packet(*caller, message.data)
            return
        what, _, endpoint = message.subject.removeprefix(f"{self._subject}.").partition(".")
        if what == "beat":
            self._heard(endpoint)
            self._link.publish(message.reply)
        elif what == "drain":
            self.drain()
            if message.reply:
                self._link.publish(message.reply)

    def _heard(self, endpoint: str) -> None:
        now = anyio.current_time()
        self._endpoints.setdefault(endpoint, Liveness(now)).handle_heard(now)

    def _handle_packet(self, endpoint: str, call_id: str, data: bytes) -> None:
        try:
            packet = Packet.decode(data)
        except ProtocolError as error:
            logger.warning("Dropped a packet of an endpoint: %s", error)
            return
        self._heard(endpoint)
        call = self._calls.get(call_id)
        if call is None:
            subject = f"{self._link.subjects.endpoint(endpoint)}.call.{call_id}"
            if packet.unknown:
                return
            if packet.number != 0 or call_id in self._ended:
                self._link.publish(subject, Packet(unknown=True).encode())
                return
            reply = f"{self._subject}.call.{endpoint}.{call_id}"
            channel = NatsChannel(self._link, subject, most=self._most, reply=reply)
            call = self._calls[call_id] = _Call(endpoint, channel)
        if packet.unknown:  # the endpoint gave it up
            self._forget(call_id)
            return
        try:
            for message in call.channel.receive(packet):
                self._handle_message(call_id, call, message)
        except ProtocolError as error:
            logger.warning("Ended a call: %s", error)
            self._forget(call_id)

    def _handle_message(self, call_id: str, call: "_Call", data: bytes) -> None:
        match read_for_worker(data):
            case CallAsk() as ask:
                if self._draining.is_set() or self.running >= self.identity.max_calls:
                    self._settle(call_id, call, Busy())
                    return
                call.runs = True
                if self.running == self.identity.max_calls:
                    self._notify()  # it is full
                if ask.client is not None and ask.tool == TABS_OPEN:
                    self._clients.setdefault(call.endpoint, set()).add(ask.client)
                self._tasks.start_soon(self._run, call_id, call, ask)
            case Cancel():
                call.scope.cancel()
            case ToolsAsk(owner=owner):
                tools = self._by_owner().get(owner, [])
                self._settle(call_id, call, self._describe(owner, tools))
            case LeaveAsk(client=client):
                self._clients.get(call.endpoint, set()).discard(client)
                self._session.leave(f"{call.endpoint}.{client}")
                self._settle(call_id, call, Done())

    async def _run(self, call_id: str, call: "_Call", ask: CallAsk) -> None:
        limits = Limits(idle=ask.idle, ceiling=ask.ceiling)
        client = None if ask.client is None else _RemoteClient(f"{call.endpoint}.{ask.client}")
        outcome: Any = None
        records: list[CallRecord] = []
        try:
            with call.scope, within_trace(ask.traceparent):
                try:
                    value = await self._session.caller.call(
                        ask.tool,
                        ask.arguments,
                        limits=limits,
                        observers=(_Reporter(call.channel),),
                        client=client,
                        on_record=records.append if ask.trace else None,
                    )
                    outcome = returned(value)
                except Exception as error:
                    if not isinstance(error, CallError):
                        logger.exception("%s failed", ask.tool)
                    self._counts["failures"] += 1
                    outcome = failed(error, ask.tool)
        finally:
            if self.running == self.identity.max_calls:
                self._notify()  # it is no longer full
            call.runs = False
            self._counts["calls"] += 1
            if records and outcome is not None:
                outcome = outcome.model_copy(update={"record": records[0].to_json()})
            if call_id in self._calls:  # its endpoint still waits, if only to hear of its end
                self._settle(call_id, call, Done() if outcome is None else outcome, ask.tool)

    def _settle(self, call_id: str, call: "_Call", outcome: Any, tool: str = "") -> None:
        """Send the last message of a call, and forget the call when that has arrived."""
        try:
            data = encode(outcome)
        except PydanticSerializationError as error:
            data = encode(failed(error, tool))
        call.channel.on_settled = partial(self._forget, call_id)
        call.channel.send(data)

    def _forget(self, call_id: str) -> None:
        """Forget a call: it has ended, or nobody waits for it any more."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        call.channel.close()
        if call.runs:
            call.scope.cancel()
        self._ended[call_id] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        if not self._calls:
            self._idle.set()

    # --- endpoints that go ---

    def _handle_relinked(self) -> None:
        now = anyio.current_time()
        for liveness in self._endpoints.values():
            liveness.handle_relinked(now)
        for call in self._calls.values():
            call.channel.relink()
        self._announce()

    async def _look_for_gone_endpoints(self) -> None:
        while True:
            await anyio.sleep(LOOK_EVERY)
            now = anyio.current_time()
            for endpoint, liveness in [*self._endpoints.items()]:
                if self._link.connected and now >= liveness.gone_at():
                    self._drop_endpoint(endpoint)

    def _drop_endpoint(self, endpoint: str) -> None:
        del self._endpoints[endpoint]
        calls = [call_id for call_id, call in self._calls.items() if call.endpoint == endpoint]
        if calls:
            logger.warning("The endpoint %s has gone: cancelled %d calls", endpoint, len(calls))
        for call_id in calls:
            self._forget(call_id)
        for client in self._clients.pop(endpoint, ()):
            self._session.leave(f"{endpoint}.{client}")


@dataclass(slots=True)
class _Call:
    """What one endpoint asked for.

    Attributes:
        endpoint: Who.
        channel: Carries the answers.
        runs: Whether a tool runs for it.
        scope: Cancels it.
    """

    endpoint: str
    channel: NatsChannel
    runs: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class _Reporter(CallObserver):
    """Passes on what happens in a call."""

    def __init__(self, channel: NatsChannel) -> None:
        self._channel = channel

    def on_sent(self) -> None:
        self._channel.send(encode(Sent()))

    def on_progress(self, reports: Sequence[ProgressReport], /) -> None:
        if self._channel.queued < MOST_UNREAD:
            self._channel.send(encode(Progress(reports=[*reports])))

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        if self._channel.queued < MOST_UNREAD:
            self._channel.send(encode(Logs(entries=[*entries])))


class _RemoteClient:
    """An MCP client of an endpoint."""

    takes_links = False

    def __init__(self, owner: str) -> None:
        self.owner = owner

    def follow(self, stream: Followed) -> None:
        """Do nothing: the client reads a stream with the tool for that."""

    def wake(self) -> None:
        """Do nothing, for the same reason."""


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
