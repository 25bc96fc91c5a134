"""What happens to messages that cross a hop with injected faults."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.fault_injection import (
    Action,
    FaultLog,
    Faults,
    InjectedFault,
    Piece,
    Rule,
    corrupt,
    counts,
    draws,
    ranges,
    read_log,
)


def passed(*rules: Rule, texts: str = "abcd", **options: Any) -> str:
    """Return what comes out of one direction, in order; each message is one letter."""
    faults = Faults("websocket", "up", rules, seed=1, **options)
    pieces = [faults.apply("tool.progress", text) for text in texts]
    return "".join(piece.text for taken in pieces for piece in taken)


@pytest.mark.parametrize(
    ("action", "nth", "wanted"),
    [
        ("drop", None, ""),
        ("drop", (2,), "acd"),
        ("drop", (1, 4), "bc"),
        ("duplicate", (3,), "abccd"),
        ("reorder", (1,), "bacd"),
        ("reorder", (1, 2), "cabd"),
        ("reorder", (4,), "abc"),
        ("delay", None, "abcd"),
    ],
)
def test_a_rule_is_carried_out_on_the_messages_it_counts(
    action: Action, nth: tuple[int, ...] | None, wanted: str
) -> None:
    assert passed(Rule("websocket", action, nth=nth)) == wanted


def test_a_delay_is_reported_with_the_message_that_waits() -> None:
    faults = Faults("websocket", "up", [Rule("websocket", "delay", nth=(2,), seconds=1.5)], seed=1)

    taken = [faults.apply("tool.progress", text) for text in "ab"]

    assert taken == [[Piece("a")], [Piece("b", 1.5)]]


@pytest.mark.parametrize(
    "rule",
    [
        Rule("port", "drop"),
        Rule("websocket", "drop", direction="down"),
        Rule("websocket", "drop", kind="tool.result"),
    ],
)
def test_messages_of_another_hop_direction_or_kind_pass(rule: Rule) -> None:
    assert passed(rule) == "abcd"


def test_messages_are_counted_by_what_the_rule_is_for() -> None:
    fired: list[tuple[Rule, int]] = []
    rule = Rule("websocket", "drop", kind="tool.result", nth=(1,))
    faults = Faults("websocket", "up", [rule], seed=1, on_fired=lambda *what: fired.append(what))

    progress = faults.apply("tool.progress", "a")
    result = faults.apply("tool.result", "b")

    assert (progress, result) == ([Piece("a")], [])
    assert fired == [(rule, 1)]


def test_rules_that_are_injected_later_leave_the_counts_of_those_before() -> None:
    rules = [Rule("websocket", "drop", nth=(3,))]
    faults = Faults("websocket", "up", rules, seed=1)
    texts = ""
    for text in "abcd":
        texts += "".join(each.text for each in faults.apply("x", text))
        rules.append(Rule("websocket", "duplicate", nth=(3,)))

    assert texts == "abd"  # of the second rule's, "d" is the third but for "c"


@given(st.sets(st.integers(1, 30)).map(sorted))
def test_numbers_are_written_as_ranges_and_read_again(numbers: list[int]) -> None:
    assert counts(ranges(numbers)) == tuple(numbers)


def test_ranges_are_short() -> None:
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"


A_LOG = FaultLog(
    seed=7,
    injected=(
        InjectedFault(Rule("port", "delay", kind="tool.progress", seconds=0.5), {"up": "1-2"}),
        InjectedFault(Rule("mcp", "drop", "down", nth=(2,), number=1)),
    ),
    done=("reload_extension()",),
)


def test_a_log_is_written_as_json_and_read_again() -> None:
    assert read_log(A_LOG.to_json()) == A_LOG
    assert "\n" not in A_LOG.to_json()
    assert [str(each) for each in A_LOG.injected] == [
        "delay port tool.progress 0.5 s: up 1-2",
        "drop mcp down nth=2: no message",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "This is not a fault log: Invalid JSON: "),
        ('{"injected": []}', "This is not a fault log: seed: "),
        ('{"seed": 1, "injected": [{"rule": {"hop": "wire", "action": "drop"}}]}', r"rule\.hop: "),
    ],
)
def test_an_invalid_log_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_log(text)


def test_an_injected_rule_is_carried_out_again_on_the_messages_it_was_carried_out_on() -> None:
    injected = InjectedFault(Rule("websocket", "drop"), {"up": "2,4"})

    assert passed(*injected.to_replay(), texts="abcde") == "ace"


def test_an_injected_rule_that_found_no_message_finds_none_again() -> None:
    assert passed(*InjectedFault(Rule("websocket", "drop")).to_replay()) == "abcd"


def test_a_condition_is_asked_before_a_message_is_counted() -> None:
    rule = Rule("websocket", "drop", nth=(1,))

    assert passed(rule, when=lambda index, text: index == 0 and text in "cd") == "abd"


def test_the_first_rule_that_matches_is_carried_out_alone() -> None:
    rules = (Rule("websocket", "duplicate", nth=(2,)), Rule("websocket", "drop", nth=(2,)))

    # Of the second rule's, "b" was not one: the first took it.
    assert passed(*rules) == "abbd"


def test_a_held_message_also_follows_a_corrupted_one() -> None:
    rules = (Rule("websocket", "reorder", nth=(1,)), Rule("websocket", "drop", nth=(1,)))

    assert passed(*rules) == "acd"


@given(st.text(min_size=1), st.floats(0, 1, exclude_max=True))
def test_a_corrupted_text_differs_in_one_character(text: str, draw: float) -> None:
    corrupted = corrupt(text, draw)

    assert len(corrupted) == len(text)
    assert sum(old != new for old, new in zip(text, corrupted, strict=True)) == 1


def test_an_empty_text_cannot_be_corrupted() -> None:
    assert corrupt("", 0.5) == ""


def test_the_same_seed_corrupts_the_same_characters() -> None:
    rule = Rule("websocket", "corrupt")

    assert passed(rule, texts="abcdefgh") == passed(rule, texts="abcdefgh") == "########"


def test_each_corrupted_message_uses_the_next_random_number() -> None:
    faults = Faults("websocket", "up", [Rule("websocket", "corrupt")], seed=7)
    text = "a" * 1000

    corrupted = [faults.apply("x", text)[0].text for _ in range(300)]

    wanted = [int(draw * 1000) for draw in draws(7)]
    assert [each.index("#") for each in corrupted] == [*wanted, *wanted[: 300 - len(wanted)]]
    assert len(set(wanted)) > 100


def test_another_seed_has_other_random_numbers() -> None:
    assert draws(1) == draws(1) != draws(2)


def test_a_rule_is_written_with_its_time_in_milliseconds() -> None:
    assert Rule("port", "delay", "up", "tool.progress", (1,), 0.25).to_json() == {
        "hop": "port",
        "action": "delay",
        "direction": "up",
        "kind": "tool.progress",
        "nth": (1,),
        "number": 0,
        "ms": 250.0,
    }


def test_a_log_is_empty_until_something_is_injected_or_done() -> None:
    injected = InjectedFault(Rule("port", "drop"))
    logs = [FaultLog(0), FaultLog(0, (injected,)), FaultLog(0, done=("close_tab()",))]
    assert [log.is_empty for log in logs] == [True, False, False]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"seconds": "2s"}, "seconds='2s' is not a valid delay; use a number of seconds"),
        ({"seconds": -1.0}, "seconds=-1.0 is not a valid delay; use a number of seconds"),
        ({"seconds": float("nan")}, "seconds=nan is not a valid delay; use a number of seconds"),
        ({"nth": (0,)}, "nth=0 is not a valid position; the first message is nth=1"),
        ({"nth": (1, "2")}, "nth='2' is not a valid position; the first message is nth=1"),
        ({"direction": "in"}, "'in' is not a valid direction; use 'up' or 'down'"),
    ],
)
def test_a_rule_that_could_not_be_applied_is_an_error(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        Rule("websocket", "delay", **wrong)
