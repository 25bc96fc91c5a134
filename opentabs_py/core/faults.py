"""Faults that a test plants on a hop, and what becomes of each message that passes.

The same rules run in the page's relay (`testing/faults.js`); both draw from the same random
numbers, so that a run with the same seed is the same run.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

Hop = Literal["mcp", "websocket", "port", "event"]
Direction = Literal["up", "down"]
Action = Literal["drop", "delay", "duplicate", "reorder", "corrupt"]

_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done to which messages of a hop.

    Attributes:
        hop: Where they pass.
        action: What is done. `delay` holds up what comes behind, too; `reorder` lets the next
            message pass first; `corrupt` changes one character.
        direction: `down` is to the tool, `up` from it; None is both.
        kind: What is in them, by its method or type, as `tool.progress`; None is all.
        nth: Which of those that match, from 1; None is each.
        seconds: How long a delay takes.
    """

    hop: Hop
    action: Action
    direction: Direction | None = None
    kind: str | None = None
    nth: tuple[int, ...] | None = None
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Give it for the page's side, times in milliseconds."""
        written = asdict(self)
        written["ms"] = written.pop("seconds") * 1000
        return written


@dataclass(frozen=True, slots=True)
class Piece:
    """A message that goes on, `after` seconds behind the one before it."""

    text: str
    after: float = 0.0


class Faults:
    """The rules of one hop and one direction, and how far they are.

    Args:
        rules: In the order they are tried; the first that matches is carried out.
        seed: Of what is random in them.
        when: By the index of a rule: which texts it is for besides; others pass.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        seed: int,
        when: Callable[[int, str], bool] = lambda _index, _text: True,
    ) -> None:
        self.done = 0
        self._rules = rules
        self._counts = [0] * len(rules)
        self._random = Random(seed)
        self._when = when
        self._held: list[Piece] = []

    def take(self, hop: Hop, direction: Direction, kind: str, text: str) -> list[Piece]:
        """Give what goes on in place of a message, in order."""
        action, after = self._action(hop, direction, kind, text)
        if action == "reorder":
            self._held.append(Piece(text))
            return []
        held, self._held = self._held, []
        if action == "drop":
            return held
        if action == "duplicate":
            return [Piece(text), Piece(text), *held]
        if action == "corrupt":
            return [Piece(corrupt(text, self._random)), *held]
        return [Piece(text, after), *held]

    def _action(
        self, hop: Hop, direction: Direction, kind: str, text: str
    ) -> tuple[Action | None, float]:
        for index, rule in enumerate(self._rules):
            if rule.hop != hop or rule.direction not in (None, direction):
                continue
            if rule.kind not in (None, kind) or not self._when(index, text):
                continue
            self._counts[index] += 1
            if rule.nth is None or self._counts[index] in rule.nth:
                self.done += 1
                return rule.action, rule.seconds if rule.action == "delay" else 0.0
        return None, 0.0


class Random:
    """Mulberry32: small, the same in both languages, and good enough to spoil texts with."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def below(self, bound: int) -> int:
        """Give a number from 0 to below the bound."""
        self._state = (self._state + 0x6D2B79F5) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 15)) * (mixed | 1)) & _MASK
        mixed ^= (mixed + (((mixed ^ (mixed >> 7)) * (mixed | 61)) & _MASK)) & _MASK
        return ((mixed ^ (mixed >> 14)) & _MASK) * bound >> 32


def corrupt(text: str, random: Random) -> str:
    """Change one character of a text; an empty one is given back."""
    if not text:
        return text
    at = random.below(len(text))
    return f"{text[:at]}{'#' if text[at] != '#' else '*'}{text[at + 1 :]}"
