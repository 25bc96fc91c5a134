"""A worker: makes the calls of a fleet's endpoints with its own tools.

The calls' timers and their dispatch are those of the session, beside its browsers.
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from pydantic_core import PydanticSerializationError

from opentabs_py.calling.call import CallOrigin, Cancellation
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.streams import Followed
from opentabs_py.core import failures
from opentabs_py.core.fleet import failures as fleet_failures
from opentabs_py.core.fleet.channel import Packet
from opentabs_py.core.fleet.congestion import CongestionWindow
from opentabs_py.core.fleet.liveness import UNLINKED_FOR, Liveness
from opentabs_py.core.fleet.messages import (
    Busy,
    CallRequest,
    Cancel,
    Done,
    LeaveRequest,
    Logs,
    Progress,
    Sent,
    State,
    ToolsRequest,
    encode,
    read_for_worker,
)
from opentabs_py.core.fleet.subjects import caller_of
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import RESERVED_TOOLS, STREAM_TOOLS, TABS_OPEN
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import quantity
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallError, ProtocolError
from opentabs_py.fleet.announcer import Announcer
from opentabs_py.fleet.channels import NatsChannel
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.outcomes import failed, returned
from opentabs_py.fleet.session import Session
from opentabs_py.fleet.suspension import sleep_until
from opentabs_py.fleet.trace_context import within_trace

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 0.5  # s; for endpoints that are gone
REMEMBERED: Final = 100_000  # ids of calls that have ended, which must not run again
# Bytes of reports that an endpoint may leave unread before they are dropped; a result never is.
MOST_UNREAD: Final = 64 * 1024 * 1024


class FleetWorker:
    """Makes the calls that endpoints request.

    Args:
        link: The connection.
        identity: Who it is.
        session: Has the tools.
        longest_message: The longest message to accept, in bytes.
    """

    def __init__(
        self, link: NatsLink, identity: Identity, session: Session, *, longest_message: int
    ) -> None:
        self.identity = identity
        self._link = link
        self._session = session
        self._longest_message = longest_message
        self._calls: dict[str, _Call] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._endpoints: dict[str, _Endpoint] = {}
        self._clients: dict[str, set[str]] = {}
        self._idle = anyio.Event()
        self._serves = False
        self._draining = anyio.Event()
        self._subject = link.subjects.worker(identity.name, identity.instance)
        self._announcer = Announcer(
            link, identity, session, state=lambda: self.state, running=self._count_running
        )
        self._tasks: TaskGroup

    @property
    def owners(self) -> Sequence[str]:
        """The plugins and modules whose tools it has."""
        return self._announcer.owners

    @property
    def running(self) -> int:
        """How many calls run in it now."""
        return self._count_running().total()

    @property
    def _is_full(self) -> bool:
        return self._draining.is_set() or self.running >= self.identity.max_calls

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
        """Serve calls until drained; when cancelled, end those that are running."""
        link, subjects = self._link, self._link.subjects
        end_relinks = link.relinked.subscribe(self._handle_relinked)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                await link.subscribe(f"{self._subject}.>", self._handle)
                self._serves = True
                await link.subscribe(subjects.who, lambda _: self._announcer.announce())
                tasks.start_soon(self._announcer.run)
                tasks.start_soon(self._look_for_gone_endpoints)
                await self._draining.wait()
                logger.info("Draining: %s running", quantity(self.running, "call"))
                while self._calls:
                    self._idle = anyio.Event()
                    await self._idle.wait()
                tasks.cancel_scope.cancel()
        finally:
            end_relinks()
            self._announcer.announce("leaving")
            with anyio.CancelScope(shield=True):  # bounded
                await link.flush()

    @property
    def memory(self) -> int:
        """How much memory its processes had when that was measured last, in bytes."""
        return self._announcer.counts["memory"]

    def set_memory(self, memory: int) -> None:
        """Announce from now on how much memory its processes have, in bytes."""
        self._announcer.counts["memory"] = memory

    def drain(self) -> None:
        """Stop accepting calls; `run` returns when the running ones have ended."""
        self._draining.set()
        self._announcer.announce()

    def _count_running(self) -> Counter[str]:
        calls = self._calls.values()
        return Counter(call.endpoint for call in calls if call.runs and not call.is_beside)

    # --- what arrives ---

    def _handle(self, message: Received) -> None:
        caller = caller_of(message.subject)
        if caller is not None and message.absent:
            if (known := self._endpoints.get(caller[0])) is not None:
                known.liveness.handle_absent(anyio.current_time())
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

    def _heard(self, endpoint: str) -> "_Endpoint":
        now = anyio.current_time()
        known = self._endpoints.setdefault(endpoint, _Endpoint(Liveness(now)))
        known.liveness.handle_heard(now)
        return known

    def _handle_packet(self, endpoint: str, call_id: str, data: bytes) -> None:
        try:
            packet = Packet.decode(data)
        except ProtocolError as error:
            logger.warning("Dropped a packet of an endpoint: %s", error)
            return
        window = self._heard(endpoint).window
        call = self._calls.get(call_id)
        if call is None:
            subject = f"{self._link.subjects.endpoint(endpoint)}.call.{call_id}"
            if packet.unknown:
                return
            if packet.number is None or call_id in self._ended:
                self._link.publish(subject, Packet(unknown=True).encode())
                return
            if packet.number > 0:  # those before it were dropped
                self._link.publish(subject, Packet(missing=True).encode())
                return
            reply = f"{self._subject}.call.{endpoint}.{call_id}"
            channel = NatsChannel(
                self._link,
                subject,
                longest_message=self._longest_message,
                window=window,
                reply=reply,
            )
            call = self._calls[call_id] = _Call(endpoint, channel)
        if packet.unknown:  # the endpoint gave it up
            self._forget(call_id)
            return
        try:
            for message in call.channel.receive(packet):
                self._handle_message(call_id, call, message)
        except ProtocolError as error:
            self._refuse(call_id, call, str(error))

    def _refuse(self, call_id: str, call: "_Call", why: str) -> None:
        """End a call because of a message that cannot be read."""
        if call.is_answered:
            return  # it is the rest of what was refused already
        logger.warning("Cannot read a request of the endpoint %s: %s", call.endpoint, why)
        if call.runs:
            self._forget(call_id)
        else:
            refusal = fleet_failures.unreadable_request(self.identity.name, why)
            # It is not known whose request it is, who may have something here.
            self._settle(call_id, call, failed(refusal, "").model_copy(update={"keeps": True}))

    def _handle_message(self, call_id: str, call: "_Call", data: bytes) -> None:
        if call.is_answered:
            return
        match read_for_worker(data):
            case CallRequest() as request:
                call.is_beside = request.tool in STREAM_TOOLS
                # No other can run those.
                if self._is_full and not (call.is_beside or request.tool in RESERVED_TOOLS):
                    self._settle(call_id, call, Busy())
                    return
                call.runs = True
                if self.running == self.identity.max_calls:
                    self._announcer.notify()  # it is full
                if request.client is not None and request.tool == TABS_OPEN:
                    self._note_client(call.endpoint, request.client)
                self._tasks.start_soon(self._run, call_id, call, request)
            case Cancel(reason=reason):
                call.cancel(reason)
            case ToolsRequest(owner=owner):
                self._settle(call_id, call, self._announcer.describe(owner))
            case LeaveRequest(client=client):
                self._clients.get(call.endpoint, set()).discard(client)
                self._session.handle_client_gone(f"{call.endpoint}.{client}")
                self._settle(call_id, call, Done())

    def _note_client(self, endpoint: str, client: str) -> None:
        """Record that a client of an endpoint has something here that ends with it."""
        self._clients.setdefault(endpoint, set()).add(client)

    async def _run(self, call_id: str, call: "_Call", request: CallRequest) -> None:
        limits = Limits(idle=request.idle, ceiling=request.ceiling)
        client = _RemoteClient(request, call.endpoint, self._note_client)
        outcome: Any = None
        records: list[CallRecord] = []
        try:
            with call.scope, within_trace(request.traceparent):
                try:
                    value = await self._session.caller.call(
                        request.tool,
                        request.arguments,
                        limits=limits,
                        observers=(_Reporter(call.channel),),
                        origin=CallOrigin(client, request.client_name),
                        cancellation=call.cancellation,
                        on_record=records.append if request.record or request.trace else None,
                        traced=request.trace,
                    )
                    outcome = returned(value)
                except Exception as error:
                    if not isinstance(error, CallError):
                        logger.exception("%s failed", request.tool)
                    self._announcer.counts["failures"] += 1
                    outcome = failed(error, request.tool)
        finally:
            if self.running == self.identity.max_calls:
                self._announcer.notify()  # it is no longer full
            call.runs = False
            self._announcer.counts["calls"] += 1
            if records and outcome is not None:
                outcome = outcome.model_copy(update={"record": records[0].to_json()})
            if self._note_kept(client) and outcome is not None:
                outcome = outcome.model_copy(update={"keeps": True})
            if outcome is None and not call.scope.cancel_called:
                has_begun = not call.cancellation.comes_in_time
                stopped = failures.server_stopped(request.tool, has_begun=has_begun)
                outcome = failed(stopped, request.tool)
            if call_id in self._calls:  # its endpoint still waits, if only to hear of its end
                self._settle(call_id, call, Done() if outcome is None else outcome, request.tool)

    def _note_kept(self, client: "_RemoteClient") -> bool:
        """Return whether a client has something here that ends with it, after a call."""
        key = client.session_key
        if key is None or not self._session.has_tabs(key):
            return client.has_stream
        endpoint, _, name = key.partition(".")
        if endpoint in self._endpoints:
            self._note_client(endpoint, name)
        else:
            self._session.handle_client_gone(key)  # the endpoint has gone during the call
        return True

    def _settle(self, call_id: str, call: "_Call", outcome: Any, tool: str = "") -> None:
        """Send the last message of a call, and forget the call when that has arrived."""
        try:
            data = encode(outcome)
        except PydanticSerializationError as error:
            data = encode(failed(error, tool).model_copy(update={"keeps": outcome.keeps}))
        call.is_answered = True
        call.channel.on_settled = partial(self._forget, call_id)
        call.channel.send(data)

    def _forget(self, call_id: str) -> None:
        """Forget a call: it has ended, or its caller no longer waits for it."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        call.channel.close()
        if call.runs:
            call.cancel("its caller is gone")
        self._ended[call_id] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        if not self._calls:
            self._idle.set()

    # --- endpoints that go ---

    def _handle_relinked(self) -> None:
        now = anyio.current_time()
        for known in self._endpoints.values():
            known.liveness.handle_relinked(now)
        for call in self._calls.values():
            call.channel.relink()
        self._announcer.announce()

    async def _look_for_gone_endpoints(self) -> None:
        linked = now = anyio.current_time()
        while True:
            now = await sleep_until(now + LOOK_EVERY, self._link)
            if self._link.connected:
                linked = now
                for endpoint, known in [*self._endpoints.items()]:
                    if now >= known.liveness.gone_at():
                        self._drop_endpoint(endpoint)
            elif now >= linked + UNLINKED_FOR:
                for call_id, call in [*self._calls.items()]:
                    if call.is_answered:  # no endpoint waits for the answer
                        self._forget(call_id)

    def _drop_endpoint(self, endpoint: str) -> None:
        del self._endpoints[endpoint]
        calls = [call_id for call_id, call in self._calls.items() if call.endpoint == endpoint]
        if calls:
            logger.warning(
                "The endpoint %s is gone: cancelled %s", endpoint, quantity(len(calls), "call")
            )
        for call_id in calls:
            self._forget(call_id)
        for client in self._clients.pop(endpoint, ()):
            self._session.handle_client_gone(f"{endpoint}.{client}")


@dataclass(slots=True)
class _Endpoint:
    """An endpoint that has sent a request.

    Attributes:
        liveness: Whether it is there.
        window: Limits how much is in flight to it.
    """

    liveness: Liveness
    window: CongestionWindow = field(default_factory=CongestionWindow)


@dataclass(slots=True)
class _Call:
    """One request of an endpoint.

    Attributes:
        endpoint: Who.
        channel: Carries the answers.
        runs: Whether a tool runs for it.
        is_beside: Whether that is beside the calls that may run at once: it may do nothing but wait
            for a stream's next update.
        is_answered: Whether its last message has been sent.
        scope: Its tool runs in this scope.
        cancellation: Why it is cancelled, if it is.
    """

    endpoint: str
    channel: NatsChannel
    runs: bool = False
    is_beside: bool = False
    is_answered: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    cancellation: Cancellation = field(default_factory=Cancellation)

    def cancel(self, reason: str) -> None:
        """Cancel its tool, which receives the reason."""
        self.cancellation.reason = reason
        self.scope.cancel()


class _Reporter(CallObserver):
    """Passes on what happens in a call."""

    def __init__(self, channel: NatsChannel) -> None:
        self._channel = channel

    def on_sent(self) -> None:
        self._channel.send(encode(Sent()))

    def on_reports(self, reports: Sequence[ProgressReport], /) -> None:
        if self._channel.queued < MOST_UNREAD:
            self._channel.send(encode(Progress(reports=[*reports])))

    def on_log(self, entries: Sequence[LogEntry], /) -> None:
        if self._channel.queued < MOST_UNREAD:
            self._channel.send(encode(Logs(entries=[*entries])))


class _RemoteClient:
    """Who made a call, as far as a worker knows: an endpoint, or an MCP client of it.

    Args:
        request: The call.
        endpoint: The endpoint.
        note: Called with the endpoint and its client when the client has got a stream.

    Attributes:
        has_stream: Whether the client has got a stream.
    """

    takes_links = False
    reads_streams = False  # its endpoint does not have them
    uses_gateway = False  # which workers are not told
    asker = None  # its endpoint asks

    def __init__(
        self, request: CallRequest, endpoint: str, note: Callable[[str, str], None]
    ) -> None:
        client = request.client
        self.session_key: SessionKey | None = None if client is None else f"{endpoint}.{client}"
        self.name = request.client_name
        self.has_stream = False
        self._request = request
        self._endpoint = endpoint
        self._note = note

    def follow(self, stream: Followed) -> None:  # noqa: ARG002
        """Remember the client, with which the stream ends; it reads it with the tool for that."""
        self.has_stream = True
        if self._request.client is not None:
            self._note(self._endpoint, self._request.client)

    def wake(self) -> None:
        """Do nothing, for the same reason."""
