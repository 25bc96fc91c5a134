"""Where the time of one call went, hop by hop.

Each part of the chain stamps what passes with its own clock. The browser's clock is
brought to the server's by the offset measured at `hello` and pings: half the round trip,
as NTP does (RFC 5905, section 8). What that leaves wrong is mended here: nothing arrives
before it was sent.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final, Literal

Carrier = Literal["mcp", "server", "websocket", "port", "event", "tool", "several"]
Reached = Literal["server", "websocket", "service worker", "relay", "page", "answer"]

# (stamp, where it is made), in the order of a call.
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

# How far each stamp proves that a call came, the furthest first.
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
        hop: From where to where; `a … b` where stamps between are missing.
        carrier: What carries it.
        start: Milliseconds since the call's first stamp.
        ms: How long it took, in milliseconds.
        unfinished: The call ended here, before anything came out of this hop.
    """

    hop: str
    carrier: Carrier
    start: float
    ms: float
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The hops of one call in order.

    Attributes:
        spans: None is negative, none begins before the one before it ends.
        origin: The call's first stamp, on the clock of the stamps.
        adjusted: By how many milliseconds a stamp was moved, at most, to make it so: the
            clocks disagreed. Zero when none was.
    """

    spans: tuple[Span, ...]
    origin: float = 0.0
    adjusted: float = 0.0


def clock_offset(*, sent: float, received: float, remote: float) -> float:
    """Give what to add to the remote clock to get ours; all in milliseconds."""
    return (sent + received) / 2 - remote


def reached(stamps: Collection[str], *, reported: bool = False, answered: bool = False) -> Reached:
    """Tell how far a call provably came.

    Args:
        stamps: The names of its stamps.
        reported: Progress came from its tool.
        answered: Its value came.
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
        stamps: Milliseconds, by the names of `STAMPS`; others are passed over.
        ended: When a call without an answer ended; adds the hop that was under way.
        reported: Progress came from its tool, so that was the tool.
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
    """Give the stamps so that none is earlier than the one before it.

    The server's are believed, in their order. The browser's, all of one clock, are moved
    together as little as will do, which keeps the time between them; what cannot fit even so
    is cut. A client's give way to the server's.
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
