"""How long a connection is waited for, on a clock that the test sets."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import h11
import pytest

from opentabs_py.server.http import slow_clients
from opentabs_py.server.http.slow_clients import (
    HEADERS_WITHIN,
    READ_FIRST,
    STUCK_AFTER,
    PatientProtocol,
)


@dataclass
class Loop:
    """An event loop whose time the test sets."""

    now: float = 100.0
    timers: list[tuple[float, Callable[[], None]]] = field(
        default_factory=list[tuple[float, Callable[[], None]]]
    )

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Any:
        self.timers.append((seconds, call))
        return None

    def run_next(self) -> float:
        """Let the time of the only timer pass, and return how long that was."""
        [(seconds, call)] = self.timers
        self.timers.clear()
        self.now += seconds
        call()
        return seconds


@dataclass
class Transport:
    """A connection's other end."""

    unread: int = 0
    is_aborted: bool = False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True


def a_protocol() -> Any:
    """Return a protocol without a server."""
    protocol: Any = PatientProtocol.__new__(PatientProtocol)
    protocol.loop, protocol.transport, protocol._deadline = Loop(), Transport(), None
    protocol.conn = h11.Connection(h11.SERVER)
    return protocol


def test_what_has_arrived_by_the_deadline_is_read_before_the_connection_is_closed() -> None:
    protocol = a_protocol()
    protocol._wait_for(HEADERS_WITHIN)
    assert protocol.loop.run_next() == HEADERS_WITHIN
    assert not protocol.transport.is_aborted
    assert protocol.loop.run_next() == READ_FIRST
    assert protocol.transport.is_aborted


def test_a_client_that_reads_a_byte_has_not_stopped_reading() -> None:
    protocol = a_protocol()
    protocol._since, protocol._unread = 0.0, 1_000
    assert not protocol.look_at(999, STUCK_AFTER)
    assert not protocol.look_at(999, STUCK_AFTER * 1.5)
    assert protocol.look_at(999, STUCK_AFTER * 2)


def test_a_client_whose_unread_bytes_grow_has_stopped_reading() -> None:
    protocol = a_protocol()
    protocol._since, protocol._unread = 0.0, 1_000
    assert protocol.look_at(1_001, STUCK_AFTER)


@pytest.mark.parametrize(
    ("most", "aborted"),
    [
        (300, [False, False, False]),
        (299, [True, False, False]),
        (150, [True, True, False]),
        (50, [True, True, False]),  # a lone one may leave more unread: its own limit is another
    ],
)
def test_of_connections_that_leave_too_much_unread_only_as_many_as_needed_are_closed(
    monkeypatch: pytest.MonkeyPatch, most: int, aborted: list[bool]
) -> None:
    monkeypatch.setattr(slow_clients, "UNREAD_TOTAL", most)
    connections = [a_protocol() for _ in range(3)]
    for since, each in enumerate(connections):
        each.connections, each.cycle = {*connections}, None
        each._since, each._unread, each.transport.unread = float(since), 100, 100
    connections[0]._close_stuck()
    assert [each.transport.is_aborted for each in connections] == aborted
