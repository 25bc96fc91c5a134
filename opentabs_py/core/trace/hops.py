"""Where the time of one call went, hop by hop.

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

Carrier = Literal["mcp", "server", "websocket", "port", "event", "tool", "several"]
Reached = Literal["server", "websocket", "service worker", "relay", "page", "answer"]

# (stamp, where it is taken), in the order of a call.
_PLACES: Final = (
    ("client.sent", "MCP client"),
    ("server.accepted", "server"),
    ("server.sent", "server"),
    ("worker.down", "service worker"),
    ("relay.down", "relay"),
    ("runtime.down", "page"),
    ("runtime.up", "page"),
    ("relay.up", "relay"),
    ("worker.up", "service worker"),
    ("server.received", "server"),
    ("client.received", "MCP client"),
)
STAMPS: Final = tuple(stamp for stamp, _ in _PLACES)

# The hop from each stamp to the next, and what carries it.
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
_SERVER = ("server.accepted", "server.sent", "server.received")
_BROWSER = STAMPS[3:9]
_TOOL = STAMPS.index("runtime.down")

# How far each stamp proves that a call got, the furthest first.
_PROOFS: Final[tuple[tuple[str, Reached], ...]] = (
    ("runtime.up", "answer"),  # it comes with the answer
    ("runtime.down", "page"),
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
        spans: None is negative, and none begins before the previous one ends.
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
    stamps: Mapping[str, float], *, ended: float | None = None, reported: bool = False
) -> Waterfall:
    """Turn the stamps of one call, on one clock, into its hops.

    Args:
        stamps: Seconds since the epoch, by the names in `STAMPS`; other names are ignored.
        ended: When a call without an answer ended; adds the hop that was under way.
        reported: Whether its tool reported progress, so that the last hop was the tool.
    """
    aligned = _aligned(stamps, inf if ended is None else ended)
    present = [index for index, stamp in enumerate(STAMPS) if stamp in aligned]
    if not present:
        return Waterfall(())
    times = [aligned[STAMPS[index]] for index in present]
    origin = times[0]
    spans = [
        Span(*_hop(before, after), start - origin, end - start)
        for (before, after), (start, end) in zip(pairwise(present), pairwise(times), strict=True)
    ]
    last = max(present[-1], _TOOL) if reported else present[-1]
    if ended is not None and last <= _TOOL:
        start = times[-1]
        spans.append(Span(*HOPS[last], start - origin, max(0.0, ended - start), unfinished=True))
    moved = max(abs(aligned[stamp] - stamps[stamp]) for stamp in aligned)
    return Waterfall(tuple(spans), origin, moved)


def _hop(before: int, after: int) -> tuple[str, Carrier]:
    if after == before + 1:
        return HOPS[before]
    return f"{_PLACES[before][1]} … {_PLACES[after][1]}", "several"


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
