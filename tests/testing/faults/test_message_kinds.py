"""Which kinds of messages cross each hop: a fault for any other kind would never happen."""

import re
from pathlib import Path

import pytest

from opentabs_py.testing.faults.message_faults import HOPS
from opentabs_py.testing.faults.message_kinds import check_kind, known_kinds

REPOSITORY = Path(__file__).parents[3]


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


def documented(section: str, end: str) -> set[str]:
    """Return the kinds that one end sends to the other, as in a table of docs/protocol.md."""
    protocol = (REPOSITORY / "docs" / "protocol.md").read_text()
    table = protocol.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return set(re.findall(rf"^\| {end} \| `([\w.]+)` ", table, re.MULTILINE))


def test_the_kinds_of_the_hop_event_are_the_documented_ones() -> None:
    kinds = known_kinds("event")
    assert documented("Between relay and page", "page") == kinds["up"]
    assert documented("Between relay and page", "relay") == kinds["down"]


def test_the_kinds_of_the_hop_port_are_the_documented_ones_and_those_of_frames() -> None:
    kinds, frames = known_kinds("port"), known_kinds("websocket")
    from_relay = documented("Between service worker and relay", "relay")
    to_relay = documented("Between service worker and relay", "worker")
    assert from_relay - {"traced"} == kinds["up"] - frames["up"]  # its frame has a kind of its own
    assert to_relay == kinds["down"] - frames["down"]


def test_every_hop_has_kinds_in_both_directions() -> None:
    assert all(known_kinds(hop)["up"] and known_kinds(hop)["down"] for hop in HOPS)
