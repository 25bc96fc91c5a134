"""Cut a value to what a model should read, between its members, so that it remains valid JSON.

A list keeps its first items. An object keeps all of its short members, wherever they are, because
a total or a cursor often follows a long list; the long ones share what is left. A string keeps its
beginning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import JsonValue
from pydantic_core import to_json

from opentabs_py.core.text import path_text, shorten
from opentabs_py.core.tokens import estimate_tokens, first_tokens, is_longer

_TOO_SMALL: Final = 12  # tokens; less than that says nothing about a list, object or text
_ROUNDS: Final = 3  # in which the members of an object share what others left
_MOST_PLACES: Final = 3  # that are named

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was left out.

    Attributes:
        path: Where.
        what: Of what kind.
        count: How many of these were left out.
        of: How many there were.
    """

    path: Path
    what: Literal["items", "members", "characters"]
    count: int
    of: int

    def __str__(self) -> str:
        place = f" of {shorten(path_text(self.path))}" if self.path else ""
        return f"{self.count:,} of {self.of:,} {self.what}{place}"


@dataclass(frozen=True, slots=True)
class Cut:
    """A value, cut.

    Attributes:
        value: What remains.
        left_out: What does not.
    """

    value: JsonValue
    left_out: tuple[LeftOut, ...]


def cut_value(value: JsonValue, limit: int) -> Cut:
    """Cut a JSON value to a number of tokens; a number alone remains as it is."""
    budget = limit
    while True:
        cutter = _Cutter()
        rest = cutter.cut(value, budget, ())
        # The sum of the parts' tokens is only about those of the whole.
        if budget <= 1 or not is_longer(as_text(rest), limit):
            return Cut(rest, tuple(cutter.left_out))
        budget = budget * 3 // 4


def as_text(value: JsonValue) -> str:
    """Return a value as a model reads it: JSON, or the text itself.

    A number that JSON lacks is null, as in JavaScript: Python reads `1e999` as infinity.
    """
    return value if isinstance(value, str) else to_json(value, inf_nan_mode="null").decode()


def describe_left_out(left_out: Sequence[LeftOut]) -> str:
    """Return what was left out in a few words: `812 of 1,000 items of messages`."""
    named = ", ".join(map(str, left_out[:_MOST_PLACES]))
    more = len(left_out) - _MOST_PLACES
    if more <= 0:
        return named
    return f"{named}, and more in {more:,} other place{'s' if more > 1 else ''}"


class _Cutter:
    def __init__(self) -> None:
        self.left_out: list[LeftOut] = []

    def cut(self, value: JsonValue, budget: int, path: Path) -> JsonValue:
        """Return as much of a value as costs no more than the budget."""
        if _cost(value, budget) <= budget:
            return value
        match value:
            case str():
                return self._cut_text(value, budget, path)
            case list():
                return self._cut_list(value, budget, path)
            case dict():
                return self._cut_object(value, budget, path)
            case _:
                return value

    def _cut_text(self, text: str, budget: int, path: Path) -> str:
        kept = first_tokens(text, max(budget - _TOO_SMALL, 0))
        self._note(path, "characters", len(text) - len(kept), len(text))
        return f"{kept}… {len(text) - len(kept):,} more characters"

    def _cut_list(self, items: list[JsonValue], budget: int, path: Path) -> list[JsonValue]:
        kept: list[JsonValue] = []
        left = budget - 1
        while (left := left - 1 - _cost(items[len(kept)], left)) >= 0:  # not all fit
            kept.append(items[len(kept)])
        if not kept and budget > _TOO_SMALL and isinstance(items[0], str | list | dict):
            kept = [self.cut(items[0], budget - 2, (*path, 0))]
        self._note(path, "items", len(items) - len(kept), len(items))
        return kept

    def _cut_object(
        self, members: dict[str, JsonValue], budget: int, path: Path
    ) -> dict[str, JsonValue]:
        names, left = _first_names(members, budget)
        long = dict.fromkeys(names)
        for _ in range(_ROUNDS):
            share = left // max(len(long), 1)
            costs = {name: _cost(members[name], share) for name in long}
            short = [name for name in long if costs[name] <= share]
            for name in short:
                del long[name]
                left -= costs[name]
            if not short:
                break
        share = left // max(len(long), 1)
        kept: dict[str, JsonValue] = {}
        for name in names:
            member = members[name]
            if name not in long:
                kept[name] = member
            elif share > _TOO_SMALL and isinstance(member, str | list | dict):
                kept[name] = self.cut(member, share, (*path, name))
        self._note(path, "members", len(members) - len(kept), len(members))
        return kept

    def _note(
        self, path: Path, what: Literal["items", "members", "characters"], count: int, of: int
    ) -> None:
        if count:
            self.left_out.append(LeftOut(path, what, count, of))


def _first_names(members: dict[str, JsonValue], budget: int) -> tuple[list[str], int]:
    """Return the names of as many members as fit, and what is left for their values.

    If not all of them fit, the first do, with a little of each.
    """
    names: list[str] = []
    left, reserved = budget - 1, 0
    for name, member in members.items():
        named = 2 + _count(name, left)
        valued = min(_cost(member, _TOO_SMALL), _TOO_SMALL + 1)
        if named + valued > left - reserved:
            break
        names.append(name)
        left -= named
        reserved += valued
    return names, left


def _cost(value: JsonValue, most: int) -> int:
    """Return about how many tokens a value costs; if more than `most`, some number above it."""
    match value:
        case str():
            return 1 + _count(value, most)
        case list():
            return _sum(((1, each) for each in value), most)
        case dict():
            return _sum(((2 + _count(name, most), each) for name, each in value.items()), most)
        case _:
            return estimate_tokens(to_json(value).decode())


def _sum(parts: Iterable[tuple[int, JsonValue]], most: int) -> int:
    total = 1
    for own, part in parts:
        total += own
        if total <= most:
            total += _cost(part, most - total)
        if total > most:
            break
    return total


def _count(text: str, most: int) -> int:
    return estimate_tokens(first_tokens(text, max(most, 0) + 1))
