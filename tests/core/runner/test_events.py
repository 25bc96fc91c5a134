"""Messages between pytest and the runner."""

from dataclasses import replace

from opentabs_py.core.limits import Limits
from opentabs_py.core.runner.events import (
    LONGEST_TEXT,
    LONGEST_WHY,
    CallSeen,
    NotCollected,
    Phase,
    Plan,
    Resume,
    SetPauseOnFailure,
    Started,
    read_command,
    read_event,
    to_line,
)
from opentabs_py.core.runner.lines import LONGEST_LINE, Lines
from opentabs_py.core.trace.record import CallRecord, ProgressMark


def test_an_event_is_read_as_it_was_written_with_the_record_of_a_call() -> None:
    record = CallRecord(
        "c1", "chat_send", 1.5, 0.25, "succeeded", Limits(), progress=(ProgressMark(0.1, 1, 2.0),),
        stamps={"server": 1.5},
    )  # fmt: skip
    event = CallSeen(test="t", running=False, record=record)

    line = to_line(event)

    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert read_event(line) == event


def test_an_event_with_a_lone_surrogate_is_read_with_a_replacement() -> None:
    record = CallRecord(
        "c1", "chat_send", 1.5, 0.25, "succeeded", Limits(), result="\ud83d cut",
        progress=(ProgressMark(0.1, 1, 2.0),), stamps={"server": 1.5},
    )  # fmt: skip
    phase = Phase(
        test="t", when="call", outcome="failed", seconds=0.5,
        text="assert '\ud800'", sections=(("log", "men\udce9 😀\n"),),
    )  # fmt: skip

    seen = read_event(to_line(CallSeen(test="t", running=False, record=record)))
    shown = read_event(to_line(phase))

    assert seen == CallSeen(test="t", running=False, record=replace(record, result="\ufffd cut"))
    texts = {"text": "assert '\ufffd'", "sections": (("log", "men\ufffd 😀\n"),)}
    assert shown == phase.model_copy(update=texts)


def test_an_event_with_long_texts_has_their_ends_and_is_short_enough_to_be_read() -> None:
    text = "head" + "\x01" * LONGEST_LINE + "tail"  # six bytes each in JSON
    phase = Phase(
        test="t", when="call", outcome="failed", seconds=0.5, why=text, text=text,
        sections=(("Captured stdout call", text),),
    )  # fmt: skip
    broken = NotCollected(file="a.py", path="/p/a.py", text=text)

    for event in (phase, broken):
        line = to_line(event)
        assert Lines().feed(line) == [line[:-1]]
        assert read_event(line) == event
    for kept in (phase.text, phase.sections[0][1], broken.text):
        assert (kept[:5], kept[-5:]) == ("head\x01", "\x01tail")
        assert "characters left out" in kept
        assert len(kept) <= LONGEST_TEXT
    assert len(phase.why) == LONGEST_WHY


def test_a_command_is_read_as_it_was_written() -> None:
    for command in (Resume(pause=3), SetPauseOnFailure(pauses=False)):
        assert read_command(to_line(command)) == command


def test_a_plan_says_which_tests_run_or_that_all_do() -> None:
    for chosen in (None, (), ("tests/test_a.py::test_b",)):
        plan = Plan(socket=3, screenshots="/tmp/x", chosen=chosen)
        assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_what_is_not_an_event_is_ignored() -> None:
    assert read_event(b"Traceback (most recent call last):") is None
    assert read_event(b'{"event": "started", "test": 1}') is None
    assert read_event(to_line(Resume(pause=1))) is None
    assert read_command(to_line(Started(test="t"))) is None


def test_lines_are_whole_however_they_arrive() -> None:
    lines = Lines()
    assert lines.feed(b"on") == []
    assert lines.feed(b"e\ntwo\nthr") == [b"one", b"two"]
    assert lines.feed(b"ee\n\n") == [b"three", b""]


def test_a_line_that_is_too_long_is_left_out_and_the_next_is_not() -> None:
    lines = Lines(longest=4)
    assert lines.feed(b"four\nfiver\nfo") == [b"four"]
    assert lines.feed(b"u") == []
    assert lines.feed(b"rs") == []
    assert lines.feed(b"more of it\nnext\n") == [b"next"]
    assert lines.left_out == 2
