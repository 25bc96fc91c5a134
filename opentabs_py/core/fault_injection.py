"""Faults that a test plants on a hop, and what happens to each message that passes.

The same rules run in the page's relay (`testing/faults.js`), with the random numbers that `draws`
returns, so two runs with the same seed are identical. A log records which faults hit which
messages, so that another run can repeat them exactly.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle, groupby
from math import inf
from random import Random
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from opentabs_py.core.text import first_problem

Hop = Literal["mcp", "websocket", "port", "event"]
Direction = Literal["up", "down"]
Action = Literal["drop", "delay", "duplicate", "reorder", "corrupt"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("up", "down")

_CONFIG = ConfigDict(extra="forbid")
_DRAWS: Final = 256  # a test rarely corrupts more messages in one direction of a hop


@dataclass(frozen=True, slots=True)
class Rule:
    """An action, and the messages of a hop that it applies to.

    Attributes:
        hop: The hop whose messages it applies to.
        action: What to do. `delay` also holds up the messages behind; `reorder` lets the next
            message pass first; `corrupt` changes one character.
        direction: `down` is toward the tool, `up` away from it; None means both.
        kind: The messages' method or type, for example `tool.progress`; None means all.
        nth: Which of the matching messages, counting from 1; None means every one.
        seconds: How long a delay takes.
        number: The rule's index in its log, from 0.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    hop: Hop
    action: Action
    direction: Direction | None = None
    kind: str | None = None
    nth: tuple[int, ...] | None = None
    seconds: float = 0.0
    number: int = 0

    def __post_init__(self) -> None:
        """Reject what tests may pass and no message could match.

        Raises:
            ValueError: The direction, a position or the delay is not valid.
        """
        if self.direction not in (None, *DIRECTIONS):
            raise ValueError(f"{self.direction!r} is not a valid direction; use 'up' or 'down'")
        for each in self.nth or ():
            if type(each) is not int or each < 1:
                raise ValueError(
                    f"nth={each!r} is not a valid position; the first message is nth=1"
                )
        if type(self.seconds) not in (int, float) or not 0 <= self.seconds < inf:
            raise ValueError(
                f"seconds={self.seconds!r} is not a valid delay; use a number of seconds"
            )

    def __str__(self) -> str:
        words = [self.action, self.hop, self.direction, self.kind]
        words += [f"nth={ranges(self.nth)}"] if self.nth is not None else []
        words += [f"{self.seconds:g} s"] if self.action == "delay" else []
        return " ".join(word for word in words if word is not None)

    def to_json(self) -> dict[str, Any]:
        """Return the rule for the page's side, with times in milliseconds."""
        written = asdict(self)
        written["ms"] = written.pop("seconds") * 1000
        return written


@dataclass(frozen=True, slots=True)
class Piece:
    """A message to forward, `after` seconds behind the previous one."""

    text: str
    after: float = 0.0


class Faults:
    """Applies the rules of one hop in one direction, and counts their matches.

    Args:
        hop: The hop.
        direction: The direction.
        rules: Tried in order; the first match is applied. More may be appended while messages
            pass.
        seed: Seed of the random choices.
        when: An extra condition on a message, called with the rule's index and the text; messages
            for which it returns False pass.
        on_fired: Called with each applied rule, and the message's position among those it matches
            here, counting from 1.
    """

    def __init__(
        self,
        hop: Hop,
        direction: Direction,
        rules: Sequence[Rule],
        *,
        seed: int,
        when: Callable[[int, str], bool] = lambda _index, _text: True,
        on_fired: Callable[[Rule, int], None] = lambda _rule, _count: None,
    ) -> None:
        self._hop = hop
        self._direction = direction
        self._rules = rules
        self._on_fired = on_fired
        self._counts = Counter[int]()
        self._draws = cycle(draws(seed))
        self._when = when
        self._held: list[Piece] = []

    def apply(self, kind: str, text: str) -> list[Piece]:
        """Return the messages to forward in place of this one, in order."""
        action, after = self._action(kind, text)
        if action == "reorder":
            self._held.append(Piece(text))
            return []
        held, self._held = self._held, []
        if action == "drop":
            return held
        if action == "duplicate":
            return [Piece(text), Piece(text), *held]
        if action == "corrupt":
            return [Piece(corrupt(text, next(self._draws))), *held]
        return [Piece(text, after), *held]

    def _action(self, kind: str, text: str) -> tuple[Action | None, float]:
        for index, rule in enumerate(self._rules):
            if rule.hop != self._hop or rule.direction not in (None, self._direction):
                continue
            if rule.kind not in (None, kind) or not self._when(index, text):
                continue
            self._counts[index] += 1
            if rule.nth is None or self._counts[index] in rule.nth:
                self._on_fired(rule, self._counts[index])
                return rule.action, rule.seconds if rule.action == "delay" else 0.0
        return None, 0.0


def draws(seed: int) -> list[float]:
    """Return the random numbers of one direction of a hop, from 0 to 1; the first follows the last.

    Each message that is corrupted uses the next one.
    """
    random = Random(seed)  # noqa: S311 (it must be reproducible)
    return [random.random() for _ in range(_DRAWS)]


def corrupt(text: str, draw: float) -> str:
    """Return a string with one character changed: the one at this share of its length.

    An empty text is returned as is.
    """
    if not text:
        return text
    at = int(draw * len(text))
    return f"{text[:at]}{'#' if text[at] != '#' else '*'}{text[at + 1 :]}"


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """A rule that a test injected, and what it did.

    Attributes:
        fired: By direction, the positions of the messages it was applied to among those it
            matches there, counting from 1 separately for each document.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    rule: Rule
    fired: Mapping[Direction, str] = field(default_factory=dict[Direction, str])

    def __str__(self) -> str:
        did = ", ".join(f"{direction} {which}" for direction, which in self.fired.items())
        return f"{self.rule}: {did or 'no message'}"

    def to_replay(self) -> list[Rule]:
        """Return the rules that repeat the same faults on the same messages."""
        return [
            replace(self.rule, direction=direction, nth=counts(self.fired.get(direction, "")))
            for direction in DIRECTIONS
        ]


@dataclass(frozen=True, slots=True)
class FaultLog:
    """What a test did to messages and to its browser.

    Attributes:
        seed: Seed of the random choices.
        injected: The rules, in the order they were injected.
        done: The actions on the browser, as they were called.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    seed: int
    injected: tuple[InjectedFault, ...] = ()
    done: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the test did nothing at all."""
        return not self.injected and not self.done

    def to_json(self) -> str:
        """Return the log as one line of JSON."""
        return _LOG.dump_json(self, exclude_defaults=True).decode()


def read_log(text: str) -> FaultLog:
    """Parse what `FaultLog.to_json` wrote.

    Raises:
        ValueError: It is not a valid log; the text says where.
    """
    try:
        return _LOG.validate_json(text)
    except ValidationError as error:
        raise ValueError(f"This is not a fault log: {first_problem(error)}.") from None


def ranges(numbers: Iterable[int]) -> str:
    """Return increasing numbers in short form, for example `1-3,7`."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda each: each[1] - each[0])
    ]
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def counts(text: str) -> tuple[int, ...]:
    """Parse what `ranges` wrote.

    Raises:
        ValueError: The text is not in that form.
    """
    ends = [part.split("-") for part in text.split(",") if part]
    return tuple(n for end in ends for n in range(int(end[0]), int(end[-1]) + 1))


_LOG: TypeAdapter[FaultLog] = TypeAdapter(FaultLog)
