"""Requests of an endpoint to workers, each on its own channel, until the last reply."""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import anyio

from opentabs_py.calling.call import Cancellation
from opentabs_py.core.fleet import failures
from opentabs_py.core.fleet.channel import Packet
from opentabs_py.core.fleet.congestion import CongestionWindow
from opentabs_py.core.fleet.liveness import (
    BEAT_EVERY,
    UNLINKED_FOR,
    Liveness,
)
from opentabs_py.core.fleet.messages import (
    Announcement,
    Busy,
    Cancel,
    Done,
    Failed,
    Returned,
    ToEndpoint,
    Tools,
    ToWorker,
    encode,
    read_for_endpoint,
)
from opentabs_py.errors import ProtocolError
from opentabs_py.fleet.channels import NatsChannel
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.suspension import sleep_until

logger = logging.getLogger(__name__)

PROBE_EVERY: Final = 5.0  # s; how often to find out that a worker has forgotten a request
LAST: Final = (Tools, Returned, Failed, Done, Busy)


class NotDeliveredError(Exception):
    """No part of the request has reached the worker."""


@dataclass(slots=True)
class _OpenRequest:
    worker: Announcement
    channel: NatsChannel
    handle: Callable[[ToEndpoint], None]
    answer: asyncio.Future[ToEndpoint]
    absent: int = 0  # how many of its packets were not received

    @property
    def may_be_undelivered(self) -> bool:
        """Whether NATS may still report of a packet that nobody received it."""
        return not self.channel.settled and self.absent < self.channel.published

    @property
    def has_not_arrived(self) -> bool:
        """Whether it is known that the worker has received no part of it."""
        return self.absent >= self.channel.published


@dataclass(slots=True)
class _Worker:
    """A worker with open requests.

    Attributes:
        announced: What it announced.
        liveness: Whether it is there.
        window: Limits how much is in flight to it.
    """

    announced: Announcement
    liveness: Liveness
    window: CongestionWindow = field(default_factory=CongestionWindow)


class WorkerRequests:
    """The open channels of an endpoint.

    Args:
        link: The connection.
        endpoint: The endpoint's id.
        longest_message: The longest message to accept, in bytes.
        on_lost: Called with the run of each worker that was lost while it had open requests.
    """

    def __init__(
        self, link: NatsLink, endpoint: str, *, longest_message: int, on_lost: Callable[[str], None]
    ) -> None:
        self._link = link
        self._endpoint = endpoint
        self._subject = link.subjects.endpoint(endpoint)
        self._longest_message = longest_message
        self._on_lost = on_lost
        self._open: dict[str, _OpenRequest] = {}
        self._in_use: dict[str, _Worker] = {}  # by instance
        self._held: Counter[str] = Counter()  # for other reasons than open requests

    async def start(self) -> None:
        """Listen for answers."""
        await self._link.subscribe(f"{self._subject}.>", self._handle)
        self._link.relinked.subscribe(self._handle_relinked)

    async def run(self) -> None:
        """Send heartbeats to the workers in use, and detect those that are gone."""
        linked = beat_at = probe_at = anyio.current_time()
        while True:
            gone = self._gone_at().values() if self._link.connected else ()
            now = await sleep_until(min([beat_at, *gone]), self._link)
            if self._link.connected:
                linked = now
                for instance, gone_at in self._gone_at().items():
                    if now >= gone_at:
                        self._lose(instance)
            elif now >= linked + UNLINKED_FOR:
                self._end_all()
            if now >= beat_at:
                beat_at = now + BEAT_EVERY
                self._beat()
            if now >= probe_at:
                probe_at = now + PROBE_EVERY
                self._probe()

    def _gone_at(self) -> dict[str, float]:
        """Return when each worker in use counts as gone, if nothing is heard of it until then."""
        awaiting = {
            request.worker.instance for request in self._open.values() if request.may_be_undelivered
        }
        return {
            instance: worker.liveness.gone_at(awaiting=instance in awaiting)
            for instance, worker in self._in_use.items()
        }

    def _beat(self) -> None:
        in_use = {each.worker.instance for each in self._open.values()} | self._held.keys()
        for instance in self._in_use.keys() - in_use:
            del self._in_use[instance]
        for instance, worker in self._in_use.items():
            beat = f"{self._subject_of(worker.announced)}.beat.{self._endpoint}"
            self._link.publish(beat, reply=f"{self._subject}.beat.{instance}")

    def _probe(self) -> None:
        """Find out which requests their workers have forgotten.

        A worker may have taken this endpoint for gone, and its answer to `relink` been dropped.
        """
        for request in self._open.values():
            if request.channel.settled:  # what has not arrived yet is sent again, not forgotten
                request.channel.probe()

    def hold(self, worker: Announcement) -> None:
        """Keep sending heartbeats to a worker that has no open request."""
        self._use(worker)
        self._held[worker.instance] += 1

    def release(self, instance: str) -> None:
        """End one `hold` of a worker."""
        self._held[instance] -= 1
        self._held = +self._held  # without those that are not held, perhaps because they have left

    def release_all(self, instance: str) -> None:
        """End every `hold` of a worker, which has left."""
        del self._held[instance]

    async def request(
        self,
        worker: Announcement,
        message: ToWorker,
        handle: Callable[[ToEndpoint], None] = lambda _: None,
        *,
        cancellation: Cancellation | None = None,
    ) -> ToEndpoint:
        """Send a request to a worker, and return its last answer; if cancelled, cancel it there.

        Args:
            worker: The worker.
            message: What to request.
            handle: Called with each answer before the last; must not block or raise.
            cancellation: Why it is cancelled, if it is.

        Raises:
            NotDeliveredError: The worker is gone and did not receive it.
            ChainError: The worker is gone, or its answer is not valid.
        """
        data = encode(message)  # which raises if it is not valid, before anything is open
        request_id = secrets.token_hex(16)
        reply = f"{self._subject}.call.{request_id}"
        window = self._use(worker).window
        subject = f"{self._subject_of(worker)}.call.{self._endpoint}.{request_id}"
        channel = NatsChannel(
            self._link, subject, longest_message=self._longest_message, window=window, reply=reply
        )
        answer: asyncio.Future[ToEndpoint] = asyncio.get_running_loop().create_future()
        request = self._open[request_id] = _OpenRequest(worker, channel, handle, answer)
        channel.send(data)
        try:
            return await answer
        except asyncio.CancelledError:
            if request_id in self._open and request.has_not_arrived:
                self._give_up(request_id)
            elif request_id in self._open:  # it stays open until the worker has heard of it
                request.handle = lambda _: None
                reason = (cancellation or Cancellation()).reason
                channel.send(encode(Cancel(reason=reason)))
            raise

    def _give_up(self, request_id: str) -> None:
        """Forget a cancelled request without sending it again, because then it could run.

        A worker that has received it learns this now or, if that message is lost, when it answers.
        """
        request = self._open.pop(request_id)
        request.channel.close()
        subject = f"{self._subject_of(request.worker)}.call.{self._endpoint}.{request_id}"
        self._link.publish(subject, Packet(unknown=True).encode())

    def _use(self, worker: Announcement) -> "_Worker":
        used = self._in_use.get(worker.instance)
        if used is None:
            used = self._in_use[worker.instance] = _Worker(worker, Liveness(anyio.current_time()))
        return used

    def _subject_of(self, worker: Announcement) -> str:
        return self._link.subjects.worker(worker.name, worker.instance)

    def _handle(self, message: Received) -> None:
        what, _, rest = message.subject.removeprefix(f"{self._subject}.").partition(".")
        now = anyio.current_time()
        if what == "beat" and (worker := self._in_use.get(rest)) is not None:
            if message.absent:
                worker.liveness.handle_absent(now)
            else:
                worker.liveness.handle_heard(now)
        elif what == "call":
            request = self._open.get(rest)
            if request is not None and message.absent:
                request.absent += 1
                self._in_use[request.worker.instance].liveness.handle_absent(now)
            elif request is not None:
                self._in_use[request.worker.instance].liveness.handle_heard(now)
                self._handle_packet(rest, request, message.data)
            elif message.reply:
                self._link.publish(message.reply, Packet(unknown=True).encode())

    def _handle_packet(self, request_id: str, request: _OpenRequest, data: bytes) -> None:
        try:
            packet = Packet.decode(data)
            if packet.unknown:
                self._end(request_id, failures.worker_lost(request.worker.name))
                return
            for text in request.channel.receive(packet):
                answer = read_for_endpoint(text)
                if isinstance(answer, LAST):
                    request.channel.acknowledge()
                    self._end(request_id, answer)
                    return
                request.handle(answer)
        except ProtocolError as error:
            self._end(request_id, failures.invalid_worker_answer(request.worker.name, str(error)))

    def _end(self, request_id: str, outcome: "ToEndpoint | Exception") -> None:
        request = self._open.pop(request_id)
        request.channel.close()
        if request.answer.done():
            return  # no caller waits for it
        if isinstance(outcome, Exception):
            request.answer.set_exception(outcome)
        else:
            request.answer.set_result(outcome)

    def _lose(self, instance: str) -> None:
        worker = self._in_use.pop(instance).announced
        logger.warning("The worker %s on %s (pid %d) is gone", worker.name, worker.host, worker.pid)
        self.release_all(instance)
        for request_id, request in [*self._open.items()]:
            if request.worker.instance == instance:
                lost = failures.worker_lost(request.worker.name)
                self._end(request_id, NotDeliveredError() if request.has_not_arrived else lost)
        self._on_lost(instance)

    def _end_all(self) -> None:
        """End every request, because NATS has been away for too long."""
        for request_id, request in [*self._open.items()]:
            was_sent = request.channel.published > 0
            self._end(request_id, failures.not_linked(self._link.options.addresses, sent=was_sent))

    def _handle_relinked(self) -> None:
        now = anyio.current_time()
        for worker in self._in_use.values():
            worker.liveness.handle_relinked(now)
        for request_id, request in [*self._open.items()]:
            if request.answer.done():
                self._give_up(request_id)
            else:
                request.channel.relink()
