"""The kinds of messages that pass each hop, and that a fault can select."""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

from opentabs_py.core.fault_injection import DIRECTIONS, Direction, Hop
from opentabs_py.core.protocol import FromExtension, ToExtension
from opentabs_py.core.text import did_you_mean, nearest

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

RESPONSE = "response"  # a JSON-RPC response, which has no method
CHUNK = "chunk"  # part of a long message; the first part has the message's own kind

_ENDS = {"tool.result", "tool.error", "tool.stopped"}
_FRAMES_UP = {"tool.progress", *_ENDS, "page.tools", "plugin.log", CHUNK}
_FRAMES_DOWN = {"tool.dispatch", "tool.cancel", "tool.ack", "tool.settled", CHUNK}
_TO_WORKER = {"attach", "began", "complete", "readiness", "received", "resending"}
_TO_RELAY = {"adopt", "ask", "drop", "resend", "start"}
_OF_CALLS = {"tool.progress", *_ENDS, "tool.stamps"}
_FROM_PAGE = {*_OF_CALLS, "page.tools", "readiness", "logged"}
_TO_PAGE = {"tool.dispatch", "tool.cancel", "adopt", "drop", "ask", "check", "nonce"}


def check_kind(hop: Hop, kind: str | None, direction: Direction | None) -> None:
    """Reject a kind of message that never passes a hop.

    Raises:
        ValueError: It never passes that hop, or not in that direction; the text says what does.
    """
    known = known_kinds(hop)
    passing = [way for way in DIRECTIONS if kind in known[way]]
    if kind is None or (passing if direction is None else direction in passing):
        return
    if passing:
        raise ValueError(
            f"{kind!r} passes the hop {hop!r} only in the direction {passing[0]!r}; "
            f"with direction={direction!r} the fault would have no effect."
        )
    kinds = sorted(known["up"] | known["down"])
    same_end = [each for each in kinds if each.endswith(kind.rpartition(".")[2])]
    near = [*same_end, *nearest(kind, kinds)]
    hint = did_you_mean(near[:1]) or f"use one of: {', '.join(kinds)}."
    raise ValueError(f"No {kind!r} passes the hop {hop!r}; {hint}")


@cache
def known_kinds(hop: Hop) -> Mapping[Direction, frozenset[str]]:
    """Return the kinds of messages that pass a hop, by direction."""
    match hop:
        case "mcp":
            return _of_mcp()
        case "websocket":
            up, down = {*_methods(FromExtension), CHUNK}, {*_methods(ToExtension), CHUNK}
            return _both(up | {RESPONSE}, down | {RESPONSE})
        case "port":
            return _both(_FRAMES_UP | _TO_WORKER, _FRAMES_DOWN | _TO_RELAY)
        case "event":
            return _both(_FROM_PAGE, _TO_PAGE)


def _of_mcp() -> Mapping[Direction, frozenset[str]]:
    # Tests import this file during collection, when importing the SDK would take half a second.
    from mcp import types

    return _both(
        {*_methods(types.ServerRequest), *_methods(types.ServerNotification), RESPONSE},
        {*_methods(types.ClientRequest), *_methods(types.ClientNotification), RESPONSE},
    )


def _both(up: set[str], down: set[str]) -> Mapping[Direction, frozenset[str]]:
    return {"up": frozenset(up), "down": frozenset(down)}


def _methods(union: Any) -> set[str]:
    return {model.model_fields["method"].default for model in get_args(union)}
