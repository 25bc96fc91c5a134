"""The time that a call spent on each hop.

Each part of the chain stamps passing messages with its own clock. The browser's clock is
aligned with the server's by the offset measured at `hello` and pings: half the round trip,
as NTP does (RFC 5905, section 8). The remaining error is corrected here, so that nothing
arrives before it was sent.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final, Literal

Carrier = Literal["mcp", "server", "fleet", "websocket", "port", "event", "tool", "several"]
Reached = Literal["server", "websocket", "service worker", "relay", "page", "answer"]

BEGUN: Final = "runtime.down"
"""The stamp of a tool that is about to start in its page."""

# (stamp, where it is taken), in the order of a call.
_PLACES: Final = (
    ("client.sent", "MCP client"),
    ("server.accepted", "server"),
    ("fleet.sent", "endpoint"),
    ("fleet.down", "worker of the fleet"),
    ("server.sent", "server"),
    ("worker.down", "service worker"),
    ("relay.down", "relay"),
    (BEGUN, "page"),
    ("runtime.up", "page"),
    ("relay.up", "relay"),
    ("worker.up", "service worker"),
    ("server.received", "server"),
    ("fleet.up", "endpoint"),
    ("client.received", "MCP client"),
)
ORDER: Final = tuple(stamp for stamp, _ in _PLACES)
"""All stamps, in the order of a call."""
FLEET_STAMPS: Final = ("fleet.sent", "fleet.down", "fleet.up")
STAMPS: Final = tuple(stamp for stamp in ORDER if stamp not in FLEET_STAMPS)
"""The stamps of a call on one machine, in their order."""

# The hop from each of these to the next, and what carries it.
HOPS: Final[tuple[tuple[str, Carrier], ...]] = (
    ("MCP client → server", "mcp"),
    ("server", "server"),
    ("server → service worker", "websocket"),
    ("service worker → relay", "port"),
    ("relay → page", "event"),
    ("tool", "tool"),
    ("page → relay", "event"),
    ("relay → service worker", "port"),
    ("service worker → server", "websocket"),
    ("server → MCP client", "mcp"),
)
# The same in a fleet, where they differ. What waits for a worker waits in the endpoint.
_FLEET_HOPS: Final[dict[tuple[str, str], tuple[str, Carrier]]] = {
    ("server.accepted", "fleet.sent"): ("server", "server"),
    ("fleet.sent", "fleet.down"): ("endpoint → worker", "fleet"),
    ("fleet.down", "server.sent"): ("worker of the fleet", "server"),
    ("server.received", "fleet.up"): ("worker → endpoint", "fleet"),
    ("fleet.down", "fleet.up"): ("worker of the fleet", "server"),
    ("fleet.up", "client.received"): ("server → MCP client", "mcp"),
}
_BETWEEN: Final = dict(zip(pairwise(STAMPS), HOPS, strict=True)) | _FLEET_HOPS
_AFTER: Final = {before: hop for (before, _), hop in reversed(_BETWEEN.items())}
_NAMES: Final = dict(_PLACES)
_SERVER = (
    "server.accepted",
    "fleet.sent",
    "fleet.down",
    "server.sent",
    "server.received",
    "fleet.up",
)
_BROWSER = STAMPS[3:9]
_TOOL = ORDER.index(BEGUN)

# How far each stamp proves that a call got, the furthest first.
_PROOFS: Final[tuple[tuple[str, Reached], ...]] = (
    ("runtime.up", "answer"),  # it comes with the answer
    (BEGUN, "page"),
    ("relay.down", "relay"),
    ("worker.down", "service worker"),
    ("server.sent", "websocket"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """One hop of a call.

    Attributes:
        hop: From where to where; `a … b` if stamps in between are missing.
        carrier: What carries it.
        start: Seconds since the call's first stamp.
        seconds: How long it took.
        unfinished: Whether the call ended during this hop.
    """

    hop: str
    carrier: Carrier
    start: float
    seconds: float
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The hops of one call, in order.

    Attributes:
        spans: Each begins where the previous one ends, or later; no duration is negative.
        origin: The call's first stamp.
        adjusted: The most seconds by which a stamp was moved to ensure that, because
            the clocks disagreed; zero if none was.
    """

    spans: tuple[Span, ...]
    origin: float = 0.0
    adjusted: float = 0.0


def clock_offset(*, sent: float, received: float, remote: float) -> float:
    """Return what to add to the remote clock to get ours; all in seconds."""
    return (sent + received) / 2 - remote


def reached(stamps: Collection[str], *, reported: bool = False, answered: bool = False) -> Reached:
    """Return how far a call provably got.

    Args:
        stamps: The names of its stamps.
        reported: Whether its tool reported progress.
        answered: Whether its value arrived.
    """
    if answered:
        return "answer"
    for stamp, place in _PROOFS:
        if stamp in stamps:
            return "page" if reported and place != "answer" else place
    return "page" if reported else "server"


def waterfall(
    stamps: Mapping[str, float],
    *,
    ended: float | None = None,
    reported: bool = False,
    answered: bool = False,
) -> Waterfall:
    """Turn the stamps of one call, on one clock, into its hops.

    Args:
        stamps: Seconds since the epoch, by the names in `ORDER`; other names are ignored.
        ended: When the call ended; adds the hop that was under way, if no answer came from a page.
        reported: Whether its tool reported progress, so that the last hop was the tool.
        answered: Whether its value arrived; that of a Python tool comes from no page.
    """
    aligned = _aligned(stamps, inf if ended is None else ended)
    present = [stamp for stamp in ORDER if stamp in aligned]
    if not present:
        return Waterfall(())
    times = [aligned[stamp] for stamp in present]
    origin = times[0]
    spans = [
        Span(*_hop(before, after), start - origin, end - start)
        for (before, after), (start, end) in zip(pairwise(present), pairwise(times), strict=True)
    ]
    last = max(ORDER.index(present[-1]), _TOOL if reported else 0)
    if ended is not None and last <= _TOOL:
        start = times[-1]
        under_way = _AFTER[ORDER[last]]
        seconds = max(0.0, ended - start)
        spans.append(Span(*under_way, start - origin, seconds, unfinished=not answered))
    moved = max(abs(aligned[stamp] - stamps[stamp]) for stamp in aligned)
    return Waterfall(tuple(spans), origin, moved)


def on_our_clock(
    stamps: Mapping[str, float], *, began: float, ended: float, sent: float, received: float
) -> dict[str, float]:
    """Return a worker's stamps of a call on the endpoint's clock, with the stamps of the fleet.

    Args:
        stamps: On the worker's clock.
        began: When the worker received the call, on its clock.
        ended: When the call ended there, on the same clock; the last stamp of a Python tool is that
            of its beginning.
        sent: When the endpoint sent the call.
        received: When it received the answer.
    """
    offset = clock_offset(sent=sent, received=received, remote=(began + ended) / 2)
    moved = {name: at + offset for name, at in stamps.items() if name != "server.accepted"}
    return moved | {"fleet.sent": sent, "fleet.down": began + offset, "fleet.up": received}


def _hop(before: str, after: str) -> tuple[str, Carrier]:
    known = _BETWEEN.get((before, after))
    return known or (f"{_NAMES[before]} … {_NAMES[after]}", "several")


def _aligned(stamps: Mapping[str, float], ended: float) -> dict[str, float]:
    """Return the stamps, adjusted so that none is earlier than the previous one.

    The server's stamps are trusted, in their order. The browser's share one clock, so they are
    moved together, as little as possible, which keeps the intervals between them; what still
    does not fit is clamped. A client's stamps yield to the server's.
    """
    aligned: dict[str, float] = {}
    at = -inf
    for stamp in _SERVER:
        if stamp in stamps:
            at = aligned[stamp] = max(at, stamps[stamp])
    earliest = aligned.get("server.sent", aligned.get("server.accepted", -inf))
    latest = max(earliest, aligned.get("server.received", ended))
    browser = [stamp for stamp in _BROWSER if stamp in stamps]
    if browser:
        first, last = stamps[browser[0]], stamps[browser[-1]]
        shift = max(min(0.0, latest - last), earliest - first)
        at = earliest
        for stamp in browser:
            at = aligned[stamp] = min(latest, max(at, stamps[stamp] + shift))
    if "client.sent" in stamps:
        aligned["client.sent"] = min([stamps["client.sent"], *aligned.values()])
    if "client.received" in stamps:
        aligned["client.received"] = max([stamps["client.received"], *aligned.values()])
    return aligned
