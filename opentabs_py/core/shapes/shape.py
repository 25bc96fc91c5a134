"""Shapes: what JSON values look like, learned from samples.

A shape counts. From how often a member was there among how many objects follows whether it is
required; from how often each string occurred, whether the strings are of a fixed set. So merging
two shapes is adding them up, and it does not matter in which order samples come.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, cast

from opentabs_py.core.json_numbers import is_safe
from opentabs_py.core.shapes.texts import Format, format_of, is_id, is_word

Kind = Literal["null", "boolean", "number", "string", "array", "object"]
Scalar = str | int | float | bool
K = TypeVar("K")

DEEPEST: Final = 48  # levels; what is below looks like anything
MOST_ITEMS: Final = 5_000  # of an array; more would tell nothing new
MOST_VALUES: Final = 16  # different ones; with more, they are not of a fixed set
LONGEST_VALUE: Final = 80  # characters
_REPEATED: Final = 3  # times that a value of a fixed set is there on average
_CHOICES: Final = re.compile(
    r".*(access|category|currency|direction|format|kind|language|level|locale|method|mode|phase"
    r"|priority|role|scope|severity|stage|state|status|type|unit|visibility)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the values at one place look like.

    Attributes:
        kinds: How many samples are of each kind.
        unsafe: How many of the numbers are not integers that JavaScript tells from all others.
        members: The shapes of the members of objects. A member is required if it has been there as
            often as there were objects.
        entries: The shape of the members whose names are ids, if any.
        items: The shape of the items of all arrays; None if none had any.
        empty: How many of the arrays had no items.
        formats: How many of the strings have each format.
        values: How often each text, number or truth value was there. None if there were too many
            different ones, or long ones.
    """

    kinds: Mapping[Kind, int] = field(default_factory=dict[Kind, int])
    unsafe: int = 0
    members: Mapping[str, "Shape"] = field(default_factory=dict[str, "Shape"])
    entries: "Shape | None" = None
    items: "Shape | None" = None
    empty: int = 0
    formats: Mapping[Format, int] = field(default_factory=dict[Format, int])
    values: Mapping[Scalar, int] | None = field(default_factory=dict[Scalar, int])

    @property
    def count(self) -> int:
        """How many samples there are."""
        return sum(self.kinds.values())

    @property
    def is_known(self) -> bool:
        """Whether the samples say anything: nulls alone do not."""
        return any(kind != "null" for kind in self.kinds)

    @property
    def is_nullable(self) -> bool:
        """Whether a sample is null."""
        return "null" in self.kinds

    @property
    def format(self) -> Format | None:
        """The format that all strings have."""
        return next((each for each, n in self.formats.items() if n == self.kinds["string"]), None)

    def is_required(self, member: str) -> bool:
        """Return whether all objects had a member."""
        return self.members[member].count == self.kinds.get("object")

    def fixed_set(self, name: str) -> Sequence[str] | None:
        """Return the strings that occurred if they look like a fixed set; sorted.

        That is guessed from words that are there several times, in a member whose name says that
        it is a choice, such as `status`.

        Args:
            name: The name of the member.
        """
        if self.values is None or not _CHOICES.fullmatch(name):
            return None
        found = sorted(each for each in self.values if isinstance(each, str) and is_word(each))
        is_small = 2 <= len(found) <= self.kinds.get("string", 0) / _REPEATED
        return found if is_small and len(found) == len(self.values) else None


EMPTY: Final = Shape()


def shape_of(*samples: Any) -> Shape:
    """Return the shape of JSON values."""
    return _shape(samples, DEEPEST)


def merge(*shapes: Shape) -> Shape:
    """Return the shape of all samples of some shapes."""
    known = [shape for shape in shapes if shape.kinds]
    if len(known) == 1:
        return known[0]
    names = dict.fromkeys(name for shape in known for name in shape.members)
    return Shape(
        kinds=_added(shape.kinds for shape in known),
        unsafe=sum(shape.unsafe for shape in known),
        members={
            name: merge(*(shape.members[name] for shape in known if name in shape.members))
            for name in names
        },
        entries=_merged(shape.entries for shape in known),
        items=_merged(shape.items for shape in known),
        empty=sum(shape.empty for shape in known),
        formats=_added(shape.formats for shape in known),
        values=_few(shape.values for shape in known),
    )


def kind_of(value: Any) -> Kind:
    """Return the kind of a JSON value; integers and fractions are both numbers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list | tuple) else "object"


def _shape(samples: Sequence[Any], depth: int) -> Shape:
    kinds = Counter[Kind](map(kind_of, samples))
    if depth == 0:
        return Shape(kinds=kinds, values=None)
    members: dict[str, list[Any]] = {}
    entries: list[Any] = []
    items: list[Any] = []
    empty = 0
    formats: Counter[Format] = Counter()
    scalars: list[Mapping[Scalar, int] | None] = []
    unsafe = 0
    for sample in samples:
        match kind_of(sample):
            case "object":
                for name, value in cast("Mapping[str, Any]", sample).items():
                    (entries if is_id(name) else members.setdefault(name, [])).append(value)
            case "array":
                items.extend(sample[:MOST_ITEMS])
                empty += not sample
            case "null":
                pass
            case kind:
                if kind == "string" and (found := format_of(sample)) is not None:
                    formats[found] += 1
                too_long = kind == "string" and len(sample) > LONGEST_VALUE
                scalars.append(None if too_long else {sample: 1})
                unsafe += kind == "number" and not is_safe(sample)
    return Shape(
        kinds=kinds,
        unsafe=unsafe,
        members={name: _shape(values, depth - 1) for name, values in members.items()},
        entries=_shape(entries, depth - 1) if entries else None,
        items=_shape(items, depth - 1) if items else None,
        empty=empty,
        formats=formats,
        values=_few(scalars),
    )


def _merged(shapes: Iterable[Shape | None]) -> Shape | None:
    known = [shape for shape in shapes if shape is not None]
    return merge(*known) if known else None


def _added(counts: Iterable[Mapping[K, int]]) -> Mapping[K, int]:
    total: Counter[K] = Counter()
    for each in counts:
        total.update(each)
    return total


def _few(counts: Iterable[Mapping[Scalar, int] | None]) -> Mapping[Scalar, int] | None:
    """Add up how often values were there, as long as there are few different ones."""
    total: Counter[Scalar] = Counter()
    for each in counts:
        if each is None:
            return None
        total.update(each)
        if len(total) > MOST_VALUES:
            return None
    return total
