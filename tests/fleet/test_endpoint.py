"""An endpoint's calls, with workers that are announced but not there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import anyio
import pytest

from opentabs_py.calling.call import CallOrigin, ToolCall
from opentabs_py.calling.client import CallClient
from opentabs_py.calling.clock import SystemClock
from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.observer import CallObserver, instant, progress_observers
from opentabs_py.core.fleet.failures import not_linked, worker_lost
from opentabs_py.core.fleet.liveness import SILENT_FOR, SUSPENDED_FOR
from opentabs_py.core.fleet.messages import (
    Announcement,
    Busy,
    Done,
    EndpointAnnouncement,
    Failed,
    LeaveRequest,
    McpContent,
    Returned,
    ToEndpoint,
    ToWorker,
    encode,
)
from opentabs_py.core.fleet.pool import Wanted
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.tabs.numbers import BLOCK
from opentabs_py.core.trace.recorder import CallRecorder
from opentabs_py.errors import ChainError
from opentabs_py.fleet.endpoint import Fleet
from opentabs_py.fleet.link import NatsLink
from opentabs_py.fleet.requests import NotDeliveredError
from tests.audit.records import a_record
from tests.core.fleet.test_pool import worker
from tests.fleet.pair import MOST, Wire, a_pair, a_tool
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


class FakeLink:
    """A connection on which nobody responds."""

    version = "1"
    subjects = Subjects("test")
    connected = True

    def __init__(self) -> None:
        self.relinked: Listeners[[]] = Listeners("reconnects")

    def publish(self, _subject: str, _data: bytes = b"", _reply: str = "") -> bool:
        return True


class BusyRequests:
    """To each request, a worker answers that it is busy, and then announces that it is free."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self.count = 0
        self._announce = announce

    async def request(self, *_: Any, **_options: Any) -> ToEndpoint:
        await anyio.lowlevel.checkpoint()
        self.count += 1
        self._announce()
        return Busy()


class ReturningAsks:
    """A worker answers every request with null."""

    async def request(self, *_: Any, **_options: Any) -> ToEndpoint:
        return Returned()


class Raises(CallObserver):
    """An observer that raises, although it must not."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def on_reports(self, _reports: Sequence[ProgressReport], /) -> None:
        raise self._error


def a_fleet(quotas: Quotas) -> Fleet:
    link = cast("NatsLink", FakeLink())
    return Fleet(link, SystemClock(), labels={}, quotas=quotas, longest_message=1000)


async def test_a_worker_that_says_it_is_free_and_is_not_keeps_no_call_for_ever(
    skip_time: Callable[[float], None],
) -> None:
    fleet = a_fleet(Quotas(waits=PATIENT))
    calls = 0

    def announce() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:  # for which it was asked twice
            skip_time(PATIENT)
        free: Announcement = worker("a", calls=calls)
        fleet.directory.handle(encode(free), anyio.current_time())

    announce()
    requests = BusyRequests(announce)
    fleet._requests = cast("Any", requests)
    [owner] = worker("a").served
    with anyio.fail_after(2 * PATIENT), pytest.raises(ChainError) as caught:
        await fleet.call("chat_send", Wanted(owner), ToolCall({}, Limits()))
    assert caught.value.detail.code == "FLEET_BUSY"
    assert requests.count > 1
    assert (fleet.waiting, fleet.running) == (0, 0)


@pytest.mark.parametrize("error", [KeyError("mine"), TimeoutError("mine")])
async def test_a_call_whose_observer_raises_while_it_waits_still_gets_its_place(
    error: Exception,
) -> None:
    fleet = a_fleet(Quotas())
    fleet._requests = cast("Any", ReturningAsks())
    full = worker("a", running={"f" * 16: 2})
    fleet.directory.handle(encode(full), anyio.current_time())
    call = ToolCall({}, Limits(), observers=(Raises(error),))
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fleet.call, "chat_send", Wanted("chat"), call)
            await until_all_wait()
            assert (fleet.waiting, fleet.running) == (1, 0)
            fleet.directory.handle(encode(worker("a")), anyio.current_time())
    assert (fleet.waiting, fleet.running) == (0, 0)


@dataclass
class Client:
    """An MCP client."""

    session_key: str
    name: str = "c"


class Workers:
    """Answers each request with the next answer, or raises it; `requested` has the requests.

    After the last of them, a request is not answered.
    """

    def __init__(self, *answers: ToEndpoint | Exception) -> None:
        self.requested: list[tuple[str, ToWorker]] = []
        self.held: list[str] = []
        self._answers = [*answers]

    async def request(
        self, worker: Announcement, message: ToWorker, *_: Any, **_options: Any
    ) -> ToEndpoint:
        self.requested.append((worker.name, message))
        await anyio.lowlevel.checkpoint()
        if not self._answers:
            await anyio.sleep_forever()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def hold(self, worker: Announcement) -> None:
        self.held.append(worker.instance)

    def release(self, instance: str) -> None:
        self.held.remove(instance)

    def release_all(self, instance: str) -> None:
        self.held = [each for each in self.held if each != instance]


def a_fleet_of(
    workers: Workers, *announced: Announcement, calls_per_client: int | None = None
) -> Fleet:
    fleet = a_fleet(Quotas(calls_per_client=calls_per_client))
    fleet._requests = cast("Any", workers)
    for each in announced:
        fleet.directory.handle(encode(each), anyio.current_time())
    return fleet


async def called(fleet: Fleet, owner: str = "chat", **more: Any) -> Any:
    call = ToolCall({}, Limits(), **more)
    with anyio.fail_after(PATIENT):
        return await fleet.call("chat_send", Wanted(owner), call)


async def test_a_call_that_did_not_reach_its_worker_is_made_in_another() -> None:
    workers = Workers(NotDeliveredError(), Returned(value="sent"))
    fleet = a_fleet_of(workers, worker("a", 10), worker("b", 20))
    assert await called(fleet) == "sent"
    assert sorted(name for name, _ in workers.requested) == ["a", "b"]
    assert (fleet.waiting, fleet.running) == (0, 0)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Failed(kind="chain", code="NO_TAB", message="No tab is open."), "NO_TAB"),
        (Done(), "FLEET_PROTOCOL"),
        (Returned(content=McpContent(content=[{"type": "strange"}])), "FLEET_PROTOCOL"),
        (
            Failed(
                kind="tool",
                code="E",
                message="",
                content=McpContent(content=[{"type": "strange"}]),
            ),
            "FLEET_PROTOCOL",
        ),
        (worker_lost("a"), "WORKER_LOST"),
    ],
)
async def test_a_call_without_a_value_ends_with_an_error_and_frees_its_place(
    answer: ToEndpoint | Exception, code: str
) -> None:
    fleet = a_fleet_of(Workers(answer), worker("a"))
    with pytest.raises(ChainError) as caught:
        await called(fleet)
    assert caught.value.detail.code == code
    assert (fleet.waiting, fleet.running) == (0, 0)


async def test_a_tool_that_no_worker_serves_is_refused_at_once() -> None:
    fleet = a_fleet_of(Workers(), worker("a"))
    with pytest.raises(ChainError) as caught:
        await called(fleet, "mail")
    assert caught.value.detail.code == "NO_WORKER"
    assert (fleet.waiting, fleet.running) == (0, 0)


async def test_a_call_that_is_cancelled_while_it_runs_frees_its_place() -> None:
    fleet = a_fleet_of(Workers(), worker("a"))
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(called, fleet)
            await until_all_wait()
            assert fleet.running == 1
            tasks.cancel_scope.cancel()
    assert (fleet.waiting, fleet.running) == (0, 0)


async def test_a_call_that_waits_for_others_of_its_client_says_so() -> None:
    fleet = a_fleet_of(Workers(), worker("a"), calls_per_client=1)
    said: list[ProgressReport] = []
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(called, fleet)
            await until_all_wait()
            tasks.start_soon(partial(called, fleet, observers=progress_observers(said.append)))
            await until_all_wait()
            tasks.cancel_scope.cancel()
    [report] = said
    assert report.message == (
        "This client already has 1 call running, which is its limit; this call is next."
    )


async def test_the_record_of_the_worker_is_taken_over_unless_it_cannot_be_read() -> None:
    told = a_record(tab_id=7, url="https://chat.example/")
    answers = [Returned(record=told.to_json()), Returned(record={"of": "another version"})]
    fleet = a_fleet_of(Workers(*answers), worker("a"))
    tabs: list[int | None] = []
    for _ in answers:
        now = instant(SystemClock())
        recorder = CallRecorder(call_id="1", name="chat_send", limits=Limits(), now=now)
        await called(fleet, recorder=recorder)
        tabs.append(recorder.succeed(None, now).tab_id)
    assert tabs == [7, None]


async def test_a_plugin_is_ready_if_some_worker_has_a_tab_of_it_or_needs_none() -> None:
    fleet = a_fleet_of(Workers(), worker("a", 10, ready=0))
    assert (fleet.status("chat"), fleet.status("mail")) == ("closed", "closed")
    fleet.directory.handle(encode(worker("b", 20)), anyio.current_time())
    assert fleet.status("chat") == "ready"
    fleet.directory.remove(worker("b").instance)
    fleet.directory.handle(encode(worker("c", 30, ready=None)), anyio.current_time())
    assert fleet.status("chat") == "ready"


async def test_a_worker_is_held_while_a_client_has_a_tab_there_and_told_when_it_leaves() -> None:
    a = worker("a")
    workers = Workers(Done(), worker_lost("a"))
    fleet = a_fleet_of(workers, a)
    fleet.own(None, 1, a, {"chat"})
    assert workers.held == []
    fleet.own("c1", 2, a, {"chat"})
    fleet.own("c1", 3, a, {"chat"})
    fleet.disown("c1", 2)
    assert workers.held == [a.instance]
    fleet.disown("c1", 3)
    assert workers.held == []
    for client in ("c1", "c2"):
        fleet.own(client, 4, a, {"chat"})
        await fleet.handle_client_gone(client)  # the second time, the worker is lost
        assert workers.held == []
    assert workers.requested == [("a", LeaveRequest(client="c1")), ("a", LeaveRequest(client="c2"))]


async def test_a_worker_is_held_while_a_client_has_something_there_and_told_when_it_leaves() -> (
    None
):
    keeps = Returned(value=1, keeps=True)
    a = worker("a")
    workers = Workers(keeps, keeps, keeps, Done())
    fleet = a_fleet_of(workers, a)
    await called(fleet)
    assert workers.held == []
    mine = CallOrigin(cast("CallClient", Client("c1")))
    for _ in range(2):
        await called(fleet, origin=mine)
        assert workers.held == [a.instance]
    await fleet.handle_client_gone("c1")
    assert workers.held == []
    assert workers.requested[-1] == ("a", LeaveRequest(client="c1"))


async def test_a_client_whose_tab_is_gone_uses_all_workers_again() -> None:
    a, b = worker("a", 1), worker("b", 2)
    in_a, in_b = BLOCK, 2 * BLOCK
    fleet = a_fleet_of(workers := Workers(Returned(keeps=True), Returned()), a, b)
    fleet.own("c1", in_b, b, {"chat"})
    fleet.own("c1", in_a, a, {"chat"})
    call = ToolCall({}, Limits(), origin=CallOrigin(cast("CallClient", Client("c1"))))
    left: list[tuple[int, ...]] = []
    for _ in range(2):
        await fleet.call("chat_send", Wanted("chat", own_tabs=(in_a, in_b)), call)
        left.append(fleet.holdings.of("c1", "chat"))
    assert left == [(in_a, in_b), (in_b,)]
    assert [name for name, _ in workers.requested] == ["a", "a"]


async def test_a_worker_is_told_of_a_client_that_has_left_when_nats_is_back_at_last() -> None:
    a = worker("a")
    workers = Workers(not_linked("nats", sent=False), not_linked("nats", sent=True), Done())
    fleet = a_fleet_of(workers, a)
    fleet.own("c1", 2, a, {"chat"})
    with anyio.fail_after(PATIENT):
        await fleet.handle_client_gone("c1")
    assert workers.requested == [("a", LeaveRequest(client="c1"))] * 3


async def test_the_tabs_in_a_worker_that_is_lost_are_forgotten() -> None:
    a = worker("a")
    fleet = a_fleet_of(Workers(), a)
    fleet.own("c1", 2, a, {"chat"})
    changed = fleet.changed()
    fleet._handle_lost(a.instance)
    assert changed.is_set()
    assert fleet.holdings.of("c1", "chat") == ()
    assert not fleet.directory.all


async def test_a_worker_that_has_left_is_held_no_longer() -> None:
    a = worker("a")
    workers = Workers()
    fleet = a_fleet_of(workers, a)
    fleet.own("c1", 2, a, {"chat"})
    assert workers.held == [a.instance]
    fleet.directory.handle(encode(worker("a", state="leaving")), anyio.current_time())
    assert workers.held == []


async def test_a_call_that_is_cancelled_when_its_place_has_just_been_found_frees_it() -> None:
    workers = Workers()
    fleet = a_fleet_of(workers, worker("a", running={"f" * 16: 2}))
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(called, fleet)
            await until_all_wait()
            fleet.directory.handle(encode(worker("a")), anyio.current_time())
            assert fleet.running == 1
            tasks.cancel_scope.cancel()
    assert (fleet.waiting, fleet.running) == (0, 0)
    assert workers.requested == []


async def test_an_endpoint_starts_with_the_tools_of_the_workers_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.endpoint.QUIET_FOR", 0.001)
    monkeypatch.setattr("opentabs_py.fleet.endpoint.KNOWN_WITHIN", 2 * PATIENT)
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            pair.session.serve(a_tool("chat_send", "chat"))
            link = cast("NatsLink", pair.wire)
            fleet = Fleet(link, SystemClock(), labels={}, quotas=Quotas(), longest_message=MOST)
            await fleet.start(tasks)
            assert [each.listing.name for each in fleet.catalog.entries] == ["chat_send"]
            tasks.cancel_scope.cancel()


async def test_an_endpoint_that_was_suspended_keeps_its_workers(
    monkeypatch: pytest.MonkeyPatch, skip_time: Callable[[float], None]
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.endpoint.LOOK_EVERY", 0.001)
    monkeypatch.setattr("opentabs_py.fleet.endpoint.KNOWN_WITHIN", 0.0)
    wire = Wire()
    link = cast("NatsLink", wire)
    fleet = Fleet(link, SystemClock(), labels={}, quotas=Quotas(), longest_message=MOST)
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            await fleet.start(tasks)
            fleet.directory.handle(encode(worker("a")), anyio.current_time())
            await until_all_wait()
            skip_time(2 * SILENT_FOR + SUSPENDED_FOR)
            looks = wire.looks
            while wire.looks < looks + 2:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    assert [each.name for each in fleet.directory.all] == ["a"]


async def test_an_endpoint_starts_without_workers_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.endpoint.KNOWN_WITHIN", 0.01)
    wire = Wire()
    link = cast("NatsLink", wire)
    fleet = Fleet(link, SystemClock(), labels={}, quotas=Quotas(), longest_message=MOST)
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            await fleet.start(tasks)
            await fleet.close()
            tasks.cancel_scope.cancel()
    subject, last = wire.published[-1]
    assert subject == wire.subjects.endpoints
    announced = EndpointAnnouncement.model_validate_json(last)
    assert (announced.endpoint, announced.leaving) == (fleet.id, True)
    assert wire.is_flushed
