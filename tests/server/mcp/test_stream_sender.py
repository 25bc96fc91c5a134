"""The delivery of streams' updates to a client."""

from collections.abc import Sequence
from typing import Any, cast

import anyio
import pytest
from mcp import types
from mcp.server.session import ServerSession

from opentabs_py.calling.streams import Followed, StreamUpdate
from opentabs_py.server.mcp.stream_sender import Feed, LateUpdates, UpdateSender
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


class FakeStream:
    """A stream of which the oldest updates may have been dropped."""

    id = "i"
    uri = "stream://i"
    name = "ticks"

    def __init__(self, *numbers: int) -> None:
        self.numbers = [*numbers]
        self.is_open = True

    def since(self, number: int) -> Sequence[StreamUpdate]:
        return [StreamUpdate(each, f"tick {each}") for each in self.numbers if each > number]


class FakeSession:
    """A client's session.

    Attributes:
        sent: The parameters of each notification, and the request on whose stream it was sent.
        reported: The numbers that were reported to a client in this process.
        fails: Whether the client has hung up.
    """

    def __init__(self) -> None:
        self.sent: list[tuple[Any, types.RequestId | None]] = []
        self.reported: list[float] = []
        self.fails = False

    async def report_progress(self, progress: float, _total: None, _message: str) -> None:
        self.reported.append(progress)

    async def send_notification(
        self, notification: types.ServerNotification, related: types.RequestId | None
    ) -> None:
        await anyio.lowlevel.checkpoint()
        if self.fails:
            raise anyio.ClosedResourceError
        self.sent.append((notification.params, related))


def a_sender(
    session: FakeSession, *, token: types.ProgressToken | None = "t", logs: bool = False
) -> UpdateSender:
    return UpdateSender(cast("ServerSession", session), 5, token, logs)


async def test_the_first_update_after_a_gap_says_how_many_were_dropped() -> None:
    session = FakeSession()
    feed = Feed()
    feed.follow(FakeStream(4, 5, 8))
    await feed.send(a_sender(session).during)
    dropped = [params.meta.get("opentabs/dropped") for params, _ in session.sent]
    assert dropped == [3, None, 2]
    assert [params.progress for params, _ in session.sent] == [4, 5, 8]


async def test_an_update_is_progress_of_its_call_and_afterwards_of_the_session() -> None:
    session = FakeSession()
    sender, stream = a_sender(session), FakeStream()
    await sender.during(stream, StreamUpdate(1, "tick"), 0)
    await sender.after(stream, StreamUpdate(2, "tock"), 0)
    assert [related for _, related in session.sent] == [5, None]
    for params, _ in session.sent:
        assert isinstance(params, types.ProgressNotificationParams)
        assert (params.progress_token, params.meta) == ("t", {"tool_name": "ticks"})
    assert session.reported == []


@pytest.mark.parametrize("logs", [True, False])
async def test_without_a_token_an_update_is_a_log_message_for_those_who_want_it(
    *, logs: bool
) -> None:
    session = FakeSession()
    await a_sender(session, token=None, logs=logs).during(FakeStream(), StreamUpdate(1, "tick"), 0)
    assert session.reported == [1]
    found = [(params.level, params.logger, params.data) for params, _ in session.sent]
    assert found == ([("info", "ticks", "tick")] if logs else [])


async def test_a_client_that_hangs_up_does_not_hold_up_its_stream() -> None:
    session = FakeSession()
    session.fails = True
    feed = Feed()
    feed.follow(FakeStream(1, 2))
    await feed.send(a_sender(session).during)
    session.fails = False
    await feed.send(a_sender(session).during)
    assert session.sent == []


async def test_an_update_that_a_client_does_not_read_is_sent_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.server.mcp.stream_sender.HUNG_CLIENT", 0)
    feed, stream = Feed(), FakeStream(1, 2)
    feed.follow(stream)
    sent: list[tuple[int, int]] = []

    async def hang(_stream: Followed, update: StreamUpdate, _dropped: int) -> None:
        if update.number == 2:
            await anyio.sleep_forever()

    async def send(_stream: Followed, update: StreamUpdate, dropped: int) -> None:
        sent.append((update.number, dropped))

    await feed.send(hang)
    stream.is_open = False
    feed.drop_ended()
    await feed.send(send)
    assert sent == [(2, 0)]
    feed.drop_ended()
    assert not feed


async def test_a_stream_that_ends_after_its_call_is_sent_to_its_last_update_and_forgotten() -> None:
    session, stream, feed, late = FakeSession(), FakeStream(1), Feed(), LateUpdates()
    feed.follow(stream)
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(late.run)
            late.add(feed, a_sender(session))
            await until_all_wait()
            assert [params.progress for params, _ in session.sent] == [1]
            stream.numbers.append(2)
            stream.is_open = False
            late.wake()
            await until_all_wait()
            tasks.cancel_scope.cancel()
    assert [params.progress for params, _ in session.sent] == [1, 2]
    assert not feed
    assert not late._feeds
