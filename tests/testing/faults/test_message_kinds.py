"""Which kinds of messages cross each hop: a fault for any other kind would never happen."""

import re

import pytest

from opentabs_py.testing.faults.injector import relay_faults
from opentabs_py.testing.faults.message_faults import HOPS
from opentabs_py.testing.faults.message_kinds import check_kind, known_kinds


@pytest.mark.parametrize(
    ("hop", "kind", "direction"),
    [
        ("mcp", "notifications/progress", "up"),
        ("mcp", "tools/call", "down"),
        ("mcp", "response", None),
        ("websocket", "hello", "up"),
        ("websocket", "tool.dispatch", "down"),
        ("websocket", "response", None),
        ("port", "received", None),
        ("port", "tool.settled", "down"),
        ("port", "plugin.log", "up"),
        ("event", "tool.progress", "up"),
        ("event", "readiness", None),
        ("event", None, None),
    ],
)
def test_a_kind_that_passes_a_hop_can_be_injected(
    hop: str, kind: str | None, direction: str | None
) -> None:
    check_kind(hop, kind, direction)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hop", "kind", "direction", "wanted"),
    [
        ("websocket", "nonsense", None, "No 'nonsense' passes the hop 'websocket'; use one of: "),
        ("websocket", "tool.progres", None, "did you mean 'tool.progress'?"),
        ("mcp", "tool.progress", None, "did you mean 'notifications/progress'?"),
        ("event", "tool.ack", None, "No 'tool.ack' passes the hop 'event'"),
        ("websocket", "tool.dispatch", "up", "passes the hop 'websocket' only in the direction"),
    ],
)
def test_a_kind_that_never_passes_a_hop_is_refused(
    hop: str, kind: str, direction: str | None, wanted: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(wanted)):
        check_kind(hop, kind, direction)  # type: ignore[arg-type]


def test_the_kinds_of_the_hop_event_are_those_that_the_relay_distinguishes() -> None:
    script = relay_faults().decode()
    for direction, constant in (("up", "UP"), ("down", "DOWN")):
        table = re.search(rf"const {constant} = .*?\(\{{(.*?)\}}\)", script, re.DOTALL)
        assert table is not None
        kinds = set(re.findall(r'"([\w.]+)"', table[1]))
        assert kinds == known_kinds("event")[direction]  # type: ignore[index]


def test_every_hop_has_kinds_in_both_directions() -> None:
    assert all(known_kinds(hop)["up"] and known_kinds(hop)["down"] for hop in HOPS)
