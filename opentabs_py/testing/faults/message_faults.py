"""The message faults of a test: which it injected, and which messages they were applied to.

Messages pass in the server's thread, so whatever changes this, or reads what they change, is called
there.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from opentabs_py.core.fault_injection import (
    DIRECTIONS,
    Direction,
    FaultLog,
    Faults,
    Hop,
    InjectedFault,
    Piece,
    Rule,
    ranges,
)
from opentabs_py.testing.faults.message_kinds import CHUNK, RESPONSE

HOPS: tuple[Hop, ...] = ("mcp", "websocket", "port", "event")
_METHOD = re.compile(r'"method":\s*"([\w./]+)"')


class MessageFaults:
    """The faults from `begin` to the next.

    Attributes:
        seed: The seed of which characters are corrupted.
        injected: The faults of the test, in order.
        rules: Those that apply now: none after `clear`, and in a replay, one fault may be several.
        epoch: Counts the sets of rules, over all tests.
        replayed: The log that is repeated, if any.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self.begin(0)

    def begin(self, seed: int, *, replayed: FaultLog | None = None) -> None:
        """Begin a test, or a replay within it, with no faults."""
        self.seed = seed
        self.replayed = replayed
        self.injected: list[Rule] = []
        self._due: list[Rule] = []  # those of them that must affect a message
        self._fired: list[dict[Direction, set[int]]] = []
        self.clear()
        self._began = self.epoch

    def clear(self) -> None:
        """Remove all faults; what they did stays in the log."""
        rules: list[Rule] = []
        whens: list[Callable[[str], bool] | None] = []
        self.rules, self._whens = rules, whens

        def is_meant(index: int, text: str) -> bool:
            when = whens[index]
            return when is None or when(text)

        def note(direction: Direction, rule: Rule, count: int) -> None:
            self._fired[rule.number].setdefault(direction, set()).add(count)

        self.epoch += 1
        self._lines = {
            (hop, direction): Faults(
                hop,
                direction,
                rules,
                seed=self.seed,
                when=is_meant,
                on_fired=partial(note, direction),
            )
            for hop in HOPS
            for direction in DIRECTIONS
        }

    def add(self, rule: Rule, when: Callable[[str], bool] | None, *, is_optional: bool) -> None:
        """Add a fault.

        Args:
            rule: The fault.
            when: An extra condition on a message.
            is_optional: Whether it may affect no message.

        Raises:
            ValueError: The log that is repeated has another fault in its place.
        """
        rules = [rule] if self.replayed is None else _again(self.replayed, rule)
        self.injected.append(rule)
        self._fired.append({})
        self._whens += [when] * len(rules)
        self.rules += rules
        if not (is_optional or all(each.nth == () for each in rules)):
            self._due.append(rule)

    def note(self, epoch: int, number: int, direction: Direction, count: int) -> None:
        """Note what a page reports: that a fault was applied to a message.

        Args:
            epoch: That of the rules that the page has; an earlier test's are ignored.
            number: The fault's index in the log.
            direction: The direction of the message.
            count: Its position among those that the rule matches, from 1.
        """
        if epoch >= self._began:
            self._fired[number].setdefault(direction, set()).add(count)

    def unfired(self) -> list[Rule]:
        """Return the faults that had to affect a message, and were applied to none so far."""
        return [rule for rule in self._due if not self._fired[rule.number]]

    def apply(self, hop: Hop, direction: Direction, text: str) -> list[Piece]:
        """Return the messages to forward in place of this one, in order."""
        found = _METHOD.search(text[:400])
        unnamed = CHUNK if text.startswith("~") else RESPONSE
        kind = unnamed if found is None else found[1]
        return self._lines[hop, direction].apply(kind, text)

    def log(self, done: Sequence[str]) -> FaultLog:
        """Return what happened so far, with what was `done` to the browser."""
        injected = [
            InjectedFault(rule, {way: ranges(sorted(counts)) for way, counts in fired.items()})
            for rule, fired in zip(self.injected, self._fired, strict=True)
        ]
        return FaultLog(self.seed, tuple(injected), tuple(done))


def _again(log: FaultLog, rule: Rule) -> list[Rule]:
    if len(log.injected) <= rule.number or log.injected[rule.number].rule != rule:
        then = ", ".join(str(each.rule) for each in log.injected) or "nothing"
        raise ValueError(
            f"The log does not belong to this test: fault number {rule.number + 1} is {rule}, "
            f"but the log has {then}."
        )
    return log.injected[rule.number].to_replay()
