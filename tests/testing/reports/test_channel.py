"""The messages of a run to the page of the tests; the run never waits for the page."""

import socket
from collections.abc import Generator
from pathlib import Path
from threading import Thread

import pytest

from opentabs_py.core.runner import PLAN, STARTED_BY
from opentabs_py.core.runner.events import (
    Lost,
    Plan,
    Resume,
    SetPauseOnFailure,
    Started,
    read_event,
    to_line,
)
from opentabs_py.core.runner.lines import Lines
from opentabs_py.testing import plugin
from opentabs_py.testing.reports import channel as module
from opentabs_py.testing.reports.channel import RunnerChannel, open_channel
from tests.waiting import PATIENT

BIG = Started(test="x" * 1_000_000)


@pytest.fixture
def ends() -> Generator[tuple[RunnerChannel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = RunnerChannel(Plan(socket=theirs.detach(), screenshots="/nowhere"))
    with ours:
        yield channel, ours
        channel.close()


def read_all(end: socket.socket) -> list[object]:
    lines = Lines()
    events: list[object] = []
    while data := end.recv(65536):
        events += map(read_event, lines.feed(data))
    return events


def test_what_is_sent_arrives_before_the_channel_is_closed(
    ends: tuple[RunnerChannel, socket.socket],
) -> None:
    channel, ours = ends
    read: list[object] = []
    reader = Thread(target=lambda: read.extend(read_all(ours)))
    reader.start()
    sent = [Started(test=str(number)) for number in range(1000)]
    for event in sent:
        channel.send(event)
    channel.close()
    reader.join(PATIENT)
    assert read == sent


def test_what_is_sent_is_on_its_way_at_once_because_a_test_may_end_the_process(
    ends: tuple[RunnerChannel, socket.socket],
) -> None:
    channel, ours = ends
    ours.setblocking(False)
    for number in range(100):
        channel.send(Started(test=str(number)))
        assert read_event(ours.recv(65536).strip()) == Started(test=str(number))


def test_readers_hold_nothing_up_and_what_they_lose_is_counted(
    ends: tuple[RunnerChannel, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, ours = ends
    monkeypatch.setattr(module, "MOST_WAITING", 3_000_000)
    for _ in range(10):  # far more than a socket buffers
        channel.send(BIG)
    read: list[object] = []
    reader = Thread(target=lambda: read.extend(read_all(ours)))
    reader.start()
    channel.close()
    reader.join(PATIENT)
    lost = [event.count for event in read if isinstance(event, Lost)]
    assert 2 <= read.count(BIG) <= 4
    assert sum(lost) == 10 - read.count(BIG)


def test_a_runner_that_has_gone_is_not_missed(ends: tuple[RunnerChannel, socket.socket]) -> None:
    channel, ours = ends
    ours.close()
    for _ in range(100):
        channel.send(BIG)
    channel.close()
    assert channel.is_to_resume(1)


def test_a_pause_ends_when_the_runner_goes(ends: tuple[RunnerChannel, socket.socket]) -> None:
    channel, ours = ends
    assert not channel.is_to_resume(1)
    ours.close()
    assert channel.is_to_resume(1)


def test_only_the_pause_that_is_meant_ends(ends: tuple[RunnerChannel, socket.socket]) -> None:
    channel, ours = ends
    assert not channel.is_to_resume(1)
    ours.sendall(to_line(Resume(pause=1)))
    assert not channel.is_to_resume(2)
    ours.sendall(b"nonsense\n" + to_line(Resume(pause=2)))
    assert channel.is_to_resume(2)
    ours.sendall(to_line(SetPauseOnFailure(pauses=False)))
    assert channel.is_to_resume(3)
    assert not channel.is_to_pause()


def test_the_pytest_plugin_knows_the_variables_of_the_runner() -> None:
    known = plugin._PLAN, plugin._STARTED_BY  # pyright: ignore[reportPrivateUsage]
    assert known == (PLAN, STARTED_BY)


def test_programs_that_tests_start_do_not_report_to_the_runner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = socket.socketpair()
    plan = Plan(socket=theirs.detach(), screenshots=str(tmp_path), chosen=("a",))
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    monkeypatch.setenv(PLAN, str(tmp_path / "plan.json"))
    channel = open_channel()
    with ours:
        assert channel.plan == plan
        with pytest.raises(KeyError):
            open_channel()
        channel.close()
