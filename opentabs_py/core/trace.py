"""Where the time of one call went, hop by hop.

Each part of the chain stamps what passes with its own clock. The browser's clock is
brought to the server's by the offset measured at `hello` and pings: half the round trip,
as NTP does (RFC 5905, section 8).
"""

from collections.abc import Mapping
from dataclasses import dataclass

# (hop, stamp at its start, stamp at its end), in the order of a call.
HOPS = (
    ("MCP client → server", "client.sent", "server.accepted"),
    ("server", "server.accepted", "server.sent"),
    ("server → service worker", "server.sent", "worker.down"),
    ("service worker → relay", "worker.down", "relay.down"),
    ("relay → page", "relay.down", "runtime.down"),
    ("tool", "runtime.down", "runtime.up"),
    ("page → relay", "runtime.up", "relay.up"),
    ("relay → service worker", "relay.up", "worker.up"),
    ("service worker → server", "worker.up", "server.received"),
    ("server → MCP client", "server.received", "client.received"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """One hop of a call.

    Attributes:
        hop: From where to where.
        start: Milliseconds since the call was accepted.
        ms: How long it took, in milliseconds.
    """

    hop: str
    start: float
    ms: float


def clock_offset(*, sent: float, received: float, remote: float) -> float:
    """Give what to add to the remote clock to get ours; all in milliseconds."""
    return (sent + received) / 2 - remote


def waterfall(stamps: Mapping[str, float]) -> list[Span]:
    """Turn the stamps of one call, on one clock, into its hops.

    A hop whose two stamps are not both there is left out. Clocks that disagree by less than
    a hop takes can give a negative length; it is shown as zero.
    """
    if not stamps:
        return []
    origin = min(stamps.values())
    return [
        Span(hop, stamps[start] - origin, max(0.0, stamps[end] - stamps[start]))
        for hop, start, end in HOPS
        if start in stamps and end in stamps
    ]
