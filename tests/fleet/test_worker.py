"""What a worker does for the endpoint that sends it requests."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, cast

import anyio
import pytest

from opentabs_py.calling.call import Cancellation
from opentabs_py.calling.streams import Followed
from opentabs_py.core.failures import MAY_HAVE_RUN
from opentabs_py.core.fleet.channel import PIECE, Packet
from opentabs_py.core.fleet.liveness import SILENT_FOR, SUSPENDED_FOR
from opentabs_py.core.fleet.messages import (
    Busy,
    CallRequest,
    Done,
    Failed,
    LeaveRequest,
    Logs,
    Progress,
    Returned,
    Sent,
    ToEndpoint,
    Tools,
    ToolsRequest,
)
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugin_names import (
    OURSELVES,
    RESERVED_TOOLS,
    STREAM_TOOLS,
    TABS_LIST,
    TABS_OPEN,
)
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry, Model
from opentabs_py.core.trace.record import read_record
from opentabs_py.errors import ChainError, ErrorDetail
from tests.audit.records import a_record
from tests.fleet.pair import ENDPOINT, MOST, Pair, a_call, a_pair, a_tool
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _only_changes_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is published that a test does not cause."""
    monkeypatch.setattr("opentabs_py.fleet.announcer.ANNOUNCE_EVERY", PATIENT)


class Strange(Model):
    """A request that workers do not know."""

    type: Literal["strange"] = "strange"


class Requester:
    """A request in the background.

    Attributes:
        said: The answers before the last.
        answers: The last one, or an error, once there is one.
    """

    def __init__(self) -> None:
        self.said: list[ToEndpoint] = []
        self.answers: list[ToEndpoint | Exception] = []
        self.scope = anyio.CancelScope()

    @property
    def answer(self) -> ToEndpoint | Exception:
        [answer] = self.answers
        return answer

    async def run(self, pair: Pair, message: Model) -> None:
        with self.scope:
            try:
                self.answers.append(await pair.request(message, self.said.append))
            except ChainError as error:
                self.answers.append(error)


@asynccontextmanager
async def requesting(request: CallRequest | None = None) -> AsyncGenerator[tuple[Pair, Requester]]:
    """A pair in which the call of a request runs."""
    requester = Requester()
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            tasks.start_soon(requester.run, pair, request or a_call())
            await pair.session.called.wait()
            yield pair, requester


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (Strange(), "Input tag 'strange' found using 'type' does not match"),
        (a_call({"text": "x" * (MOST + PIECE)}), "a message is longer than the 131,072 bytes"),
        (a_call({"text": "x" * 10 * MOST}), "a message is longer than the 131,072 bytes"),
    ],
    ids=["of another version", "too long", "far too long"],
)
async def test_a_request_that_a_worker_cannot_read_is_refused_and_does_not_run(
    request_: Model, why: str
) -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair:
            answer = await pair.request(request_)
            assert isinstance(answer, Failed)
            assert (answer.kind, answer.code) == ("chain", "FLEET_INVALID_REQUEST")
            assert answer.keeps  # its client may have a tab here
            assert answer.message.startswith(f"The worker w cannot read the request ({why}")
            assert "the tool did not run" in answer.message
            assert not pair.session.called.is_set()


async def test_a_call_of_which_a_later_message_cannot_be_read_is_cancelled() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(ChainError) as caught:
                    await pair.request(a_call({}))
                assert caught.value.detail.code == "WORKER_LOST"

            tasks.start_soon(call)
            await pair.session.called.wait()
            [sent] = pair.requests._open.values()
            sent.channel.send(b"nonsense")
            await pair.session.cancelled.wait()


async def test_a_call_is_made_as_the_endpoint_asks_and_returns_its_value() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            requester = Requester()
            request = a_call(client="c1", client_name="claude 1")
            tasks.start_soon(requester.run, pair, request)
            await pair.session.called.wait()
            [(tool, options)] = pair.session.calls
            assert (tool, options["limits"]) == ("chat_send", Limits(idle=1, ceiling=2))
            origin = options["origin"]
            assert (origin.client.session_key, origin.client.name) == (f"{ENDPOINT}.c1", "claude 1")
            assert (origin.name, options["on_record"]) == ("claude 1", None)
            pair.session.end({"sent": True})
            await pair.settle()
            assert requester.answer == Returned(value={"sent": True})
            tasks.start_soon(requester.run, pair, a_call())
            await pair.settle()
            assert pair.session.calls[-1][1]["origin"].client.session_key is None
            pair.session.end()
    last = pair.announcements()[-1]
    assert (last.calls, last.failures) == (2, 0)


async def test_what_a_call_does_meanwhile_is_passed_on_in_order() -> None:
    reports = [ProgressReport(0, 1.0, 2.0, "half")]
    entries = [LogEntry(level="info", message="hello", time=0)]
    async with requesting() as (pair, requester):
        [observer] = pair.session.calls[0][1]["observers"]
        observer.on_sent()
        observer.on_reports(reports)
        observer.on_log(entries)
        pair.session.end()
    assert requester.said == [Sent(), Progress(reports=reports), Logs(entries=entries)]


async def test_reports_that_an_endpoint_does_not_read_are_dropped_and_the_result_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.worker.MOST_UNREAD", 1)
    async with requesting() as (pair, requester):
        [observer] = pair.session.calls[0][1]["observers"]
        for number in range(3):
            observer.on_reports([ProgressReport(number)])
            observer.on_log([LogEntry(level="info", message="hello", time=0)])
        pair.session.end()
    assert requester.said == [Progress(reports=[ProgressReport(0)])]
    assert requester.answer == Returned()


async def test_a_call_that_fails_says_why_and_is_counted_and_a_bug_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors = (ChainError(ErrorDetail("NO_TAB", "No tab is open.")), KeyError("bug"))
    requesters = Requester(), Requester()
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            for each, error in zip(requesters, errors, strict=True):
                tasks.start_soon(each.run, pair, a_call())
                await pair.settle()
                pair.session.end(error)
    known, bug = (each.answer for each in requesters)
    assert isinstance(known, Failed)
    assert (known.kind, known.code) == ("chain", "NO_TAB")
    assert isinstance(bug, Failed)
    assert "bug" not in bug.message
    last = pair.announcements()[-1]
    assert (last.calls, last.failures) == (2, 2)
    assert [each.message for each in caplog.records if each.levelno == logging.ERROR] == [
        "chat_send failed"
    ]


async def test_a_value_that_json_cannot_represent_is_an_error_of_its_tool() -> None:
    async with requesting(a_call(client="c1")) as (pair, requester):
        pair.session.with_tabs.add(f"{ENDPOINT}.c1")
        pair.session.end({"value": object()})
    assert isinstance(requester.answer, Failed)
    assert "chat_send" in requester.answer.message
    assert requester.answer.keeps


@pytest.mark.parametrize("wanted", [{"record": True}, {"record": True, "trace": True}, {}])
async def test_the_record_of_a_call_is_in_its_answer_if_that_was_asked_for(
    wanted: dict[str, Any],
) -> None:
    record = a_record()
    async with requesting(a_call(**wanted)) as (pair, requester):
        options = pair.session.calls[0][1]
        assert options["traced"] is wanted.get("trace", False)
        if wanted:
            options["on_record"](record)
        else:
            assert options["on_record"] is None
        pair.session.end()
    assert isinstance(requester.answer, Returned)
    found = requester.answer.record
    assert (None if found is None else read_record(found)) == (record if wanted else None)


async def test_a_worker_takes_no_more_calls_than_it_may_run_at_once() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair(max_calls=2) as pair, anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(Requester().run, pair, a_call())
            await pair.settle()
            assert await pair.request(a_call()) == Busy()
            assert pair.worker.running == 2
            pair.session.end()
            await pair.settle()
            third = Requester()
            tasks.start_soon(third.run, pair, a_call())
            await pair.settle()
            assert not third.answers
            pair.session.end()
            pair.session.end()
    assert len(pair.session.calls) == 3


@pytest.mark.parametrize("tool", RESERVED_TOOLS)
async def test_a_worker_lists_opens_and_closes_its_tabs_however_many_calls_run(tool: str) -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair(max_calls=1) as pair, anyio.create_task_group() as tasks:
            tasks.start_soon(Requester().run, pair, a_call())
            await pair.settle()
            about_tabs = Requester()
            tasks.start_soon(about_tabs.run, pair, a_call(tool=tool))
            await pair.settle()
            assert not about_tabs.answers
            assert await pair.request(a_call()) == Busy()
            pair.session.end()
            pair.session.end()
    assert len(pair.session.calls) == 2


@pytest.mark.parametrize("tool", STREAM_TOOLS)
async def test_a_call_about_a_stream_takes_no_place_and_needs_none(tool: str) -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair(max_calls=1) as pair, anyio.create_task_group() as tasks:
            about_stream, other, second = Requester(), Requester(), Requester()
            tasks.start_soon(about_stream.run, pair, a_call(tool=tool))
            await pair.settle()
            assert pair.worker.running == 0
            tasks.start_soon(other.run, pair, a_call())
            await pair.settle()
            tasks.start_soon(second.run, pair, a_call(tool=tool))
            await pair.settle()
            assert [*about_stream.answers, *other.answers, *second.answers] == []
            for _ in range(3):
                pair.session.end()


async def test_a_worker_announces_soon_that_it_is_full_and_that_it_no_longer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.announcer.ANNOUNCE_AFTER", 0)
    with anyio.fail_after(PATIENT):
        async with a_pair(max_calls=1) as pair, anyio.create_task_group() as tasks:
            tasks.start_soon(Requester().run, pair, a_call())
            await pair.settle()
            assert pair.announcements()[-1].running == {ENDPOINT: 1}
            pair.session.end()
            await pair.settle()
            assert pair.announcements()[-1].running == {}


async def test_a_cancelled_request_cancels_its_call_and_then_nothing_is_left_of_it() -> None:
    async with requesting(a_call(record=True)) as (pair, requester):
        pair.session.calls[0][1]["on_record"](a_record())
        requester.scope.cancel()
        await pair.session.cancelled.wait()
        await pair.settle()
        assert not pair.requests._open
        assert pair.worker.running == 0


async def test_a_worker_that_drains_ends_its_calls_refuses_others_and_says_so() -> None:
    async with requesting() as (pair, requester):
        answered = f"{pair.wire.subjects.endpoint('operator')}.drain"
        pair.wire.publish(f"{pair.subject}.drain", reply=answered)
        await pair.settle()
        assert (answered, b"") in pair.wire.published
        assert [each.state for each in pair.announcements()][-2:] == ["serving", "draining"]
        assert await pair.request(a_call()) == Busy()
        assert not requester.answers
        pair.session.end("done")
        await pair.settle()
        assert requester.answer == Returned(value="done")
        assert pair.announcements()[-1].state == "leaving"


@pytest.mark.parametrize("waits", [False, True])
async def test_a_worker_that_is_stopped_says_so_to_those_whose_calls_it_ends(
    *, waits: bool
) -> None:
    pair = Pair()
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            requester, stopped = Requester(), anyio.CancelScope()

            async def run() -> None:
                with stopped:
                    await pair.worker.run()

            tasks.start_soon(run)
            await pair.requests.start()
            await pair.settle()
            tasks.start_soon(requester.run, pair, a_call())
            await pair.session.called.wait()
            [(_tool, options)] = pair.session.calls
            options["cancellation"].comes_in_time = waits  # for its page
            stopped.cancel()
    assert isinstance(requester.answer, Failed)
    assert requester.answer.code == "SERVER_STOPPED"
    assert (MAY_HAVE_RUN in requester.answer.message) is not waits
    assert pair.announcements()[-1].state == "leaving"
    assert pair.wire.is_flushed


async def test_a_worker_describes_its_tools_and_those_of_others_are_none() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair:
            limits = Limits(idle=3, ceiling=4)
            pair.session.serve(
                a_tool("chat_send", "chat", limits=limits, needs_tab=True, group="Messages"),
                a_tool("mail_send", "mail"),
                a_tool(TABS_LIST, OURSELVES),
                a_tool("stream_read", OURSELVES),
            )
            assert list(pair.worker.owners) == ["chat", "mail", OURSELVES]
            ours = await pair.request(ToolsRequest(owner=OURSELVES))
            found = await pair.request(ToolsRequest(owner="chat"))
            none = await pair.request(ToolsRequest(owner="talk"))
    assert isinstance(found, Tools)
    [tool] = found.tools
    assert (tool.name, tool.idle, tool.ceiling, tool.group) == ("chat_send", 3, 4, "Messages")
    assert found.patterns == ["https://chat.example/*"]
    assert isinstance(none, Tools)
    assert none.tools == []
    assert isinstance(ours, Tools)
    assert [each.name for each in ours.tools] == ["stream_read"]


async def test_the_tabs_of_a_client_that_leaves_are_closed_once() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair:
            await _open_tabs(pair, "c1", "c2")
            assert await pair.request(LeaveRequest(client="c1")) == Done()
            assert pair.session.gone == [f"{ENDPOINT}.c1"]
            pair.worker._drop_endpoint(ENDPOINT)
            assert pair.session.gone == [f"{ENDPOINT}.c1", f"{ENDPOINT}.c2"]


async def test_the_streams_of_a_client_end_with_its_endpoint() -> None:
    async with requesting(a_call(client="c1")) as (pair, requester):
        [(_, options)] = pair.session.calls
        client = options["origin"].client
        assert not client.reads_streams
        client.follow(cast("Followed", None))
        client.wake()
        pair.worker._drop_endpoint(ENDPOINT)
        assert pair.session.gone == [client.session_key]
        requester.scope.cancel()


async def test_a_stream_without_a_session_belongs_to_no_other_call_and_outlives_its_endpoint() -> (
    None
):
    async with requesting() as (pair, requester):
        [(_, options)] = pair.session.calls
        client = options["origin"].client
        assert client.session_key is None
        client.follow(cast("Followed", None))
        pair.worker._drop_endpoint(ENDPOINT)
        assert pair.session.gone == []
        requester.scope.cancel()


async def test_an_answer_says_that_its_client_has_a_tab_here_which_ends_with_its_endpoint() -> None:
    key = f"{ENDPOINT}.c1"
    async with requesting(a_call(client="c1")) as (pair, requester):
        pair.session.with_tabs.add(key)  # as if the tool had opened it
        pair.session.end(1)
        await pair.settle()
        assert requester.answer == Returned(value=1, keeps=True)
        assert pair.session.gone == []
        pair.worker._drop_endpoint(ENDPOINT)
        assert pair.session.gone == [key]


async def test_a_tab_that_a_tool_opens_when_its_endpoint_has_gone_is_closed() -> None:
    key = f"{ENDPOINT}.c1"
    async with requesting(a_call(client="c1")) as (pair, requester):
        pair.session.with_tabs.add(key)
        pair.worker._drop_endpoint(ENDPOINT)
        assert pair.session.gone == []
        await pair.settle()  # the call ends
        assert pair.session.gone == [key]
        requester.scope.cancel()


async def _open_tabs(pair: Pair, *clients: str | None) -> None:
    for client in clients:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Requester().run, pair, a_call(tool=TABS_OPEN, client=client))
            await pair.settle()
            pair.session.end()


async def test_of_an_endpoint_that_is_silent_for_long_the_calls_and_tabs_are_ended(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.worker.LOOK_EVERY", 0.001)
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            await _open_tabs(pair, "c1", None)
            requester = Requester()
            tasks.start_soon(requester.run, pair, a_call(client="c3"))
            await pair.settle()
            monkeypatch.setattr("opentabs_py.core.fleet.liveness.SILENT_FOR", 0)
            await pair.session.cancelled.wait()
            await pair.settle()
            assert pair.session.gone == [f"{ENDPOINT}.c1"]
            requester.scope.cancel()
    assert f"The endpoint {ENDPOINT} is gone: cancelled 1 call" in caplog.messages


async def test_while_nats_is_down_no_endpoint_counts_as_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.worker.LOOK_EVERY", 0.001)
    async with requesting() as (pair, requester):
        pair.wire.is_up = False
        monkeypatch.setattr("opentabs_py.core.fleet.liveness.SILENT_FOR", 0)
        looks = pair.wire.looks
        while pair.wire.looks < looks + 2:
            await anyio.lowlevel.checkpoint()
        assert not pair.session.cancelled.is_set()
        monkeypatch.undo()
        pair.wire.is_up = True
        pair.wire.relinked.notify()
        pair.session.end("done")
    assert requester.answer == Returned(value="done")


async def test_a_worker_that_was_suspended_takes_no_endpoint_for_silent(
    monkeypatch: pytest.MonkeyPatch, skip_time: Callable[[float], None]
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.worker.LOOK_EVERY", 0.001)
    async with requesting() as (pair, requester):
        await pair.settle()
        skip_time(SILENT_FOR + SUSPENDED_FOR)
        looks = pair.wire.looks
        while pair.wire.looks < looks + 2:
            await anyio.lowlevel.checkpoint()
        pair.session.end("done")
    assert requester.answer == Returned(value="done")


async def test_what_no_endpoint_waits_for_keeps_no_worker_from_ending_while_nats_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.worker.LOOK_EVERY", 0.001)
    monkeypatch.setattr("opentabs_py.fleet.worker.UNLINKED_FOR", 0)
    async with requesting() as (pair, requester):
        pair.wire.is_up = False
        looks = pair.wire.looks
        while pair.wire.looks < looks + 2:
            await anyio.lowlevel.checkpoint()
        assert pair.worker.running == 1  # which may still do what it was asked for
        pair.session.end("done")
        requester.scope.cancel()
    assert not pair.session.cancelled.is_set()


async def test_a_beat_is_answered() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair:
            answered = f"{pair.wire.subjects.endpoint(ENDPOINT)}.beat.{pair.identity.instance}"
            pair.wire.publish(f"{pair.subject}.beat.{ENDPOINT}", reply=answered)
            await pair.settle()
            assert (answered, b"") in pair.wire.published


async def test_a_call_that_has_ended_does_not_run_again() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            tasks.start_soon(Requester().run, pair, a_call())
            await pair.session.called.wait()
            pair.session.end()
            await pair.settle()
            to_worker = [
                each for each in pair.wire.published if each[0].startswith(f"{pair.subject}.call.")
            ]
            subject, first = to_worker[0]
            assert Packet.decode(first).number == 0
            pair.wire.publish(subject, first)
            await pair.settle()
            _, last = pair.wire.published[-1]
            assert Packet.decode(last).unknown
    assert len(pair.session.calls) == 1


async def test_a_cancelled_call_s_tool_receives_the_reason() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            cancellation = Cancellation("the server stopped")
            scope = anyio.CancelScope()

            async def call() -> None:
                with scope:
                    await pair.requests.request(pair.announced, a_call(), cancellation=cancellation)

            tasks.start_soon(call)
            await pair.session.called.wait()
            [(_, options)] = pair.session.calls
            assert options["cancellation"].reason == "the client cancelled it"
            scope.cancel()
            await pair.session.cancelled.wait()
            assert options["cancellation"].reason == "the server stopped"


async def test_a_call_that_its_endpoint_no_longer_knows_is_cancelled() -> None:
    async with requesting() as (pair, requester):
        [request_id] = pair.requests._open
        subject = f"{pair.subject}.call.{ENDPOINT}.{request_id}"
        pair.wire.publish(subject, Packet(unknown=True).encode())
        await pair.session.cancelled.wait()
        requester.scope.cancel()


async def test_an_endpoint_notices_that_a_worker_has_forgotten_a_call_although_that_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.requests.BEAT_EVERY", 0.001)
    monkeypatch.setattr("opentabs_py.fleet.requests.PROBE_EVERY", 0.001)
    async with requesting() as (pair, requester), anyio.create_task_group() as tasks:
        [request] = pair.requests._open.values()
        while not request.channel.settled:
            await anyio.lowlevel.checkpoint()
        pair.worker._drop_endpoint(ENDPOINT)  # as if it had been silent
        pair.wire.loses = pair.wire.subjects.endpoint(ENDPOINT)
        pair.wire.relinked.notify()
        await pair.settle()
        assert requester.answers == []
        pair.wire.loses = "nothing"
        tasks.start_soon(pair.requests.run)
        while not requester.answers:
            await anyio.lowlevel.checkpoint()
        assert isinstance(requester.answer, ChainError)
        assert requester.answer.detail.code == "WORKER_LOST"
        tasks.cancel_scope.cancel()


async def test_only_the_first_packet_of_a_call_opens_it(caplog: pytest.LogCaptureFixture) -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair:
            publish = partial(pair.wire.publish, f"{pair.subject}.call.{ENDPOINT}.{'a' * 32}")
            publish(b"nonsense")
            publish(Packet(unknown=True).encode())
            await pair.settle()
            before = len(pair.wire.published)
            publish(Packet(number=1, piece=b"{}").encode())
            publish(Packet(acknowledged=1).encode())
            await pair.settle()
            answers = [Packet.decode(data) for _, data in pair.wire.published[before + 2 :]]
            assert answers == [Packet(missing=True), Packet(unknown=True)]
    assert not pair.session.calls
    assert any("Dropped a packet of an endpoint" in each for each in caplog.messages)


async def test_a_request_of_several_pieces_that_were_all_dropped_is_sent_again_and_runs_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.core.fleet.channel.REPEAT_AFTER", 0.001)
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:
            pair.wire.loses = f"{pair.subject}.call"  # the worker's connection is interrupted
            requester = Requester()
            tasks.start_soon(requester.run, pair, a_call({"text": "x" * PIECE}))
            await pair.settle()
            pair.wire.loses = "nothing"
            await pair.session.called.wait()
            pair.session.end("done")
    assert requester.answer == Returned(value="done")
    assert len(pair.session.calls) == 1


async def test_what_was_lost_while_nats_was_down_is_sent_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.core.fleet.channel.REPEAT_AFTER", PATIENT)
    async with requesting() as (pair, requester):
        pair.wire.is_up = False
        pair.session.end("done")
        await pair.settle()
        pair.wire.is_up = True
        before = len(pair.announcements())
        pair.wire.relinked.notify()
        assert len(pair.announcements()) == before + 1
        await pair.settle()
        assert requester.answer == Returned(value="done")
