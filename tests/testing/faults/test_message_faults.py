"""The message faults of a test, without its browser."""

import pytest

from opentabs_py.core.fault_injection import FaultLog, Piece, Rule
from opentabs_py.testing.faults.message_faults import MessageFaults

PROGRESS = '{"jsonrpc":"2.0","method":"tool.progress","params":{}}'
DROP = Rule("websocket", "drop", kind="tool.progress", nth=(2,))


def send(faults: MessageFaults, times: int = 3) -> list[bool]:
    """Return for each of some messages whether it arrives."""
    return [faults.apply("websocket", "up", PROGRESS) == [Piece(PROGRESS)] for _ in range(times)]


def test_a_fault_is_applied_to_the_messages_that_it_selects_and_logged() -> None:
    faults = MessageFaults()
    faults.begin(7)
    faults.add(DROP, None, is_optional=False)

    assert faults.unfired() == [DROP]
    assert send(faults) == [True, False, True]
    assert faults.unfired() == []
    log = faults.log(["disconnect_websocket()"])
    assert (log.seed, log.done) == (7, ("disconnect_websocket()",))
    assert [(each.rule, each.fired) for each in log.injected] == [(DROP, {"up": "2"})]


def test_a_message_without_a_method_is_a_response_or_a_part_of_a_long_message() -> None:
    faults = MessageFaults()
    for number, kind in enumerate(("response", "chunk")):
        faults.add(Rule("mcp", "drop", kind=kind, number=number), None, is_optional=False)

    assert faults.apply("mcp", "down", '{"id":1,"result":{}}') == []
    assert faults.apply("mcp", "down", "~1~part") == []
    assert faults.apply("mcp", "down", PROGRESS) == [Piece(PROGRESS)]


def test_once_cleared_nothing_is_applied_and_the_log_stays() -> None:
    faults = MessageFaults()
    faults.add(DROP, None, is_optional=False)
    send(faults)
    faults.clear()

    assert send(faults) == [True, True, True]
    assert [each.fired for each in faults.log(()).injected] == [{"up": "2"}]


def test_what_a_page_of_an_earlier_test_reports_is_ignored() -> None:
    faults = MessageFaults()
    early = faults.epoch
    faults.begin(0)
    faults.add(Rule("port", "drop"), None, is_optional=False)
    faults.note(early, 0, "up", 1)
    assert faults.unfired() == faults.injected

    faults.clear()  # what a page reports late of this test counts
    faults.note(faults.epoch - 1, 0, "up", 1)
    assert faults.unfired() == []


def test_a_replay_applies_what_the_log_has_and_needs_the_same_faults() -> None:
    faults = MessageFaults()
    any_third = iter((False, False, True) * 2)  # counted are those that it is true of
    chosen = Rule("websocket", "drop", kind="tool.progress")
    faults.add(chosen, lambda _text: next(any_third), is_optional=False)
    assert send(faults, 6) == [True, True, False] * 2
    log = faults.log(())

    faults.begin(log.seed, replayed=log)
    faults.add(chosen, None, is_optional=False)
    assert send(faults) == [False, False, True]
    with pytest.raises(ValueError, match="fault number 2 is drop mcp, but the log has drop webs"):
        faults.add(Rule("mcp", "drop", number=1), None, is_optional=False)


@pytest.mark.parametrize("is_optional", [False, True])
def test_a_fault_must_affect_a_message_unless_it_is_optional_or_its_log_has_none(
    *, is_optional: bool
) -> None:
    faults = MessageFaults()
    faults.add(DROP, None, is_optional=is_optional)
    assert faults.unfired() == ([] if is_optional else [DROP])

    nothing = faults.log(())
    assert isinstance(nothing, FaultLog)
    faults.begin(0, replayed=nothing)
    faults.add(DROP, None, is_optional=False)
    assert faults.unfired() == []
