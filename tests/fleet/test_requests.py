"""The requests of an endpoint to workers."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest

from opentabs_py.core.fleet.channel import Packet
from opentabs_py.core.fleet.liveness import SILENT_FOR, SUSPENDED_FOR
from opentabs_py.core.fleet.messages import CallRequest, Returned, ToEndpoint, encode
from opentabs_py.errors import ChainError
from opentabs_py.fleet.link import NatsLink
from opentabs_py.fleet.requests import NotDeliveredError, WorkerRequests
from tests.core.fleet.test_pool import worker
from tests.fleet.pair import ENDPOINT, MOST, Wire, a_call
from tests.fleet.test_endpoint import FakeLink
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

A = worker("a")


class Requesting:
    """An endpoint whose workers are played by the test.

    Attributes:
        lost: The workers of which it has noticed that they are gone.
        outcome: How the request ended.
    """

    def __init__(self) -> None:
        self.wire = Wire()
        self.lost: list[str] = []
        self.outcomes: list[ToEndpoint | Exception] = []
        self.requests = WorkerRequests(
            cast("NatsLink", self.wire), ENDPOINT, longest_message=MOST, on_lost=self.lost.append
        )
        self.subject = self.wire.subjects.worker("a", A.instance)

    async def request(self, handle: Callable[[ToEndpoint], None] = lambda _: None) -> None:
        try:
            self.outcomes.append(await self.requests.request(A, a_call(), handle))
        except (ChainError, NotDeliveredError) as error:
            self.outcomes.append(error)

    @property
    def code(self) -> str:
        """The code of the error with which the request ended."""
        [outcome] = self.outcomes
        assert isinstance(outcome, ChainError)
        return outcome.detail.code

    def beats(self) -> int:
        """Return how many beats the worker was sent."""
        subjects = [subject for subject, _ in self.wire.published]
        return subjects.count(f"{self.subject}.beat.{ENDPOINT}")

    def packets(self) -> list[bytes]:
        """Return the packets of requests that were sent to the worker."""
        start = f"{self.subject}.call."
        return [data for subject, data in self.wire.published if subject.startswith(start)]

    def say(self, packet: Packet) -> None:
        """Answer the only request as the worker."""
        [request_id] = self.requests._open
        self.wire.publish(
            f"{self.wire.subjects.endpoint(ENDPOINT)}.call.{request_id}", packet.encode()
        )


@asynccontextmanager
async def requesting() -> AsyncGenerator[Requesting]:
    endpoint = Requesting()
    with anyio.fail_after(PATIENT):
        await endpoint.requests.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(endpoint.requests.run)
            yield endpoint
            tasks.cancel_scope.cancel()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # bounded by the caller
        await anyio.lowlevel.checkpoint()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoints send beats often, and a worker is gone as soon as nobody listens, not before."""
    monkeypatch.setattr("opentabs_py.fleet.requests.BEAT_EVERY", 0.001)
    monkeypatch.setattr("opentabs_py.core.fleet.liveness.ABSENT_FOR", 0)
    monkeypatch.setattr("opentabs_py.core.fleet.liveness.SILENT_FOR", PATIENT)


async def test_a_request_that_cannot_be_sent_opens_nothing() -> None:
    requests = WorkerRequests(
        cast("NatsLink", FakeLink()), "e" * 16, longest_message=1000, on_lost=lambda _: None
    )
    lone_surrogate = CallRequest(tool="chat_send", arguments={"text": "\ud800"}, idle=1, ceiling=1)
    with pytest.raises(ValueError, match="surrogates"):
        await requests.request(worker("a"), lone_surrogate)
    assert not requests._open


async def test_a_worker_that_is_gone_is_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    requests = WorkerRequests(
        cast("NatsLink", FakeLink()), "e" * 16, longest_message=1000, on_lost=lambda _: None
    )
    requests.hold(worker("a"))
    requests._lose(worker("a").instance)
    assert caplog.messages == ["The worker a on h (pid 1) is gone"]


@pytest.mark.usefixtures("quick")
async def test_a_request_that_no_worker_received_is_known_not_to_be_delivered() -> None:
    async with requesting() as endpoint:
        await endpoint.request()
        [outcome] = endpoint.outcomes
        assert isinstance(outcome, NotDeliveredError)
        assert endpoint.lost == [A.instance]
        assert not endpoint.requests._open


@pytest.mark.usefixtures("quick")
async def test_a_request_that_may_have_arrived_ends_with_its_worker_as_one_that_may_have_run() -> (
    None
):
    async with requesting() as endpoint, anyio.create_task_group() as tasks:
        await endpoint.wire.subscribe(f"{endpoint.subject}.>", lambda _: None)
        tasks.start_soon(endpoint.request)
        await endpoint.wire.settle()
        endpoint.say(Packet(acknowledged=1))
        await endpoint.wire.settle()
        endpoint.wire.stop_listening(endpoint.subject)
        await until(lambda: bool(endpoint.outcomes))
        assert endpoint.code == "WORKER_LOST"
        assert endpoint.lost == [A.instance]


@pytest.mark.usefixtures("quick")
async def test_only_silence_ends_a_request_of_which_nobody_knows_whether_it_arrived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with requesting() as endpoint, anyio.create_task_group() as tasks:
        endpoint.wire.loses = f"{endpoint.subject}.call"
        tasks.start_soon(endpoint.request)
        await until(lambda: endpoint.beats() > 3)  # to which nobody listens
        assert endpoint.outcomes == []
        monkeypatch.setattr("opentabs_py.core.fleet.liveness.SILENT_FOR", 0)
        await until(lambda: bool(endpoint.outcomes))
        assert endpoint.code == "WORKER_LOST"


@pytest.mark.usefixtures("quick")
async def test_a_worker_that_goes_without_an_open_request_is_noticed_and_forgotten() -> None:
    async with requesting() as endpoint:
        endpoint.requests.hold(A)
        await until(lambda: endpoint.lost == [A.instance])
        assert not endpoint.requests._held


@pytest.mark.usefixtures("quick")
async def test_a_worker_is_told_that_the_endpoint_is_there_as_long_as_it_is_needed() -> None:
    async with requesting() as endpoint:
        await endpoint.wire.subscribe(f"{endpoint.subject}.>", lambda _: None)
        await until(lambda: endpoint.wire.looks > 3)
        assert endpoint.beats() == 0
        endpoint.requests.hold(A)
        endpoint.requests.hold(A)
        endpoint.requests.release(A.instance)
        beats = endpoint.beats()
        await until(lambda: endpoint.beats() > beats + 2)
        endpoint.requests.release(A.instance)
        await until(lambda: not endpoint.requests._in_use)
        beats, looks = endpoint.beats(), endpoint.wire.looks
        await until(lambda: endpoint.wire.looks > looks + 3)
        assert endpoint.beats() == beats
        assert endpoint.lost == []


async def test_a_worker_that_answers_beats_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentabs_py.fleet.requests.BEAT_EVERY", 0.001)
    async with requesting() as endpoint:
        await endpoint.wire.subscribe(f"{endpoint.subject}.>", lambda _: None)
        endpoint.requests.hold(A)
        used = endpoint.requests._in_use[A.instance].liveness
        endpoint.wire.publish(f"{endpoint.wire.subjects.endpoint(ENDPOINT)}.beat.{A.instance}")
        gone_at = used.gone_at()
        await until(lambda: used.gone_at() > gone_at)


async def test_an_endpoint_that_was_suspended_takes_no_worker_for_silent(
    monkeypatch: pytest.MonkeyPatch, skip_time: Callable[[float], None]
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.requests.BEAT_EVERY", 0.001)
    async with requesting() as endpoint, anyio.create_task_group() as tasks:
        await endpoint.wire.subscribe(f"{endpoint.subject}.>", lambda _: None)
        tasks.start_soon(endpoint.request)
        await until(lambda: endpoint.beats() > 1)
        skip_time(SILENT_FOR + SUSPENDED_FOR)
        beats = endpoint.beats()
        await until(lambda: endpoint.beats() > beats + 1)
        assert endpoint.lost == []
        endpoint.say(Packet(unknown=True))


@pytest.mark.usefixtures("quick")
async def test_without_nats_nothing_is_lost_until_it_has_been_down_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with requesting() as endpoint, anyio.create_task_group() as tasks:
        await endpoint.wire.subscribe(f"{endpoint.subject}.>", lambda _: None)
        tasks.start_soon(endpoint.request)
        await endpoint.wire.settle()
        endpoint.wire.is_up = False
        monkeypatch.setattr("opentabs_py.core.fleet.liveness.SILENT_FOR", 0)
        looks = endpoint.wire.looks
        await until(lambda: endpoint.wire.looks > looks + 4)
        assert endpoint.outcomes == []
        monkeypatch.setattr("opentabs_py.fleet.requests.UNLINKED_FOR", 0)
        await until(lambda: bool(endpoint.outcomes))
        assert endpoint.code == "FLEET_NOT_CONNECTED"
        assert endpoint.lost == []


@pytest.mark.usefixtures("quick")
async def test_a_request_that_was_never_sent_ends_as_one_that_did_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.requests.UNLINKED_FOR", 0)
    async with requesting() as endpoint:
        endpoint.wire.is_up = False
        await endpoint.request()
        [outcome] = endpoint.outcomes
        assert isinstance(outcome, ChainError)
        assert outcome.detail.code == "FLEET_NOT_CONNECTED"
        assert "did not run" in outcome.detail.message
        assert outcome.detail.retryable


async def test_workers_have_time_to_come_back_when_nats_does_and_what_was_lost_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.core.fleet.channel.REPEAT_AFTER", PATIENT)
    monkeypatch.setattr("opentabs_py.fleet.requests.BEAT_EVERY", PATIENT)
    async with requesting() as endpoint, anyio.create_task_group() as tasks:
        endpoint.wire.loses = endpoint.subject
        tasks.start_soon(endpoint.request)
        await endpoint.wire.settle()
        used = endpoint.requests._in_use[A.instance].liveness
        endpoint.requests._probe()  # it has not been received, so it cannot have been forgotten
        gone_at, [sent] = used.gone_at(), endpoint.packets()
        endpoint.wire.relinked.notify()
        assert endpoint.packets() == [sent, sent]
        assert used.gone_at() > gone_at
        endpoint.say(Packet(unknown=True))


async def test_a_cancelled_request_that_may_not_have_arrived_is_not_sent_again_after_a_reconnect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.core.fleet.channel.REPEAT_AFTER", PATIENT)
    async with requesting() as endpoint:
        endpoint.wire.loses = endpoint.subject
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(endpoint.request)
            await endpoint.wire.settle()
            tasks.cancel_scope.cancel()
        before = len(endpoint.packets())
        endpoint.wire.relinked.notify()
        [packet] = endpoint.packets()[before:]
        assert Packet.decode(packet) == Packet(unknown=True)
        assert not endpoint.requests._open


async def test_a_cancelled_request_that_was_never_sent_is_forgotten() -> None:
    async with requesting() as endpoint:
        endpoint.wire.is_up = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(endpoint.request)
            await endpoint.wire.settle()
            tasks.cancel_scope.cancel()
        assert not endpoint.requests._open


async def test_an_answer_that_is_not_valid_ends_the_request() -> None:
    async with requesting() as endpoint, anyio.create_task_group() as tasks:
        await endpoint.wire.subscribe(f"{endpoint.subject}.>", lambda _: None)
        tasks.start_soon(endpoint.request)
        await endpoint.wire.settle()
        endpoint.say(Packet(number=0, piece=b"nonsense", acknowledged=1))
        await until(lambda: bool(endpoint.outcomes))
        assert endpoint.code == "FLEET_PROTOCOL"


async def test_a_worker_that_answers_a_request_which_is_unknown_is_told_so() -> None:
    async with requesting() as endpoint:
        subject = f"{endpoint.wire.subjects.endpoint(ENDPOINT)}.call.{'a' * 32}"
        packet = Packet(number=0, piece=encode(Returned())).encode()
        endpoint.wire.publish(subject, packet)
        await endpoint.wire.settle()
        assert endpoint.wire.published == [(subject, packet)]
        endpoint.wire.publish(subject, packet, reply="answer")
        await endpoint.wire.settle()
        answered, said = endpoint.wire.published[-1]
        assert answered == "answer"
        assert Packet.decode(said).unknown
