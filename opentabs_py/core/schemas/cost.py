"""Upper bounds for the work of validating a value against a JSON Schema.

A schema of 3 KB can require 2^34 checks of one value: `allOf` with the same `$ref` twice, 34
levels deep. The validator cannot be interrupted, so its work is bounded before it starts.

The *width* of a schema is how often it checks any one place in a value: the sum over the
subschemas it applies to the same place, and the maximum over those it applies to a place below.
Validation takes at most width times the number of the value's parts. Schemas for recursive data
may get wider with each level of the value, so their width depends on the value's depth.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Final, Literal
from urllib.parse import unquote

from pydantic import JsonValue

JsonObject = dict[str, JsonValue]

_Kind = Literal["object", "array"]
_Key = tuple[int | str, float, _Kind]  # of a part of the schema, or of a reference
_KINDS: Final[tuple[_Kind, ...]] = ("object", "array")

DEEPEST: Final = 64  # levels of a value into which a recursive schema is followed

_ENOUGH: Final = 10**18  # counting further is pointless

_SAME_PLACE: Final = ("not", "if", "then", "else")
_SAME_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SAME_PLACE_MAPS: Final = ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_ANY_MEMBER: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ANY_ITEM: Final = ("items", "additionalItems", "unevaluatedItems", "contains")
_EVALUATE_AGAIN: Final = ("unevaluatedProperties", "unevaluatedItems")


class EndlessSchemaError(ValueError):
    """A schema applies itself to the same place again."""


class _Recursive(Exception):  # noqa: N818 (nobody sees it)
    """A schema applies itself to a place below."""


class Widths:
    """Computes how often a schema checks one place in a value.

    Args:
        schema: A JSON Schema; references that do not resolve within it count as nothing.

    Raises:
        EndlessSchemaError: It refers to itself without descending into the value.
        RecursionError: It is nested too deeply.
    """

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._known: dict[_Key, int] = {}
        self._open: set[_Key] = set()
        self._bases = [schema, *_resources(schema)]
        self._anchors = anchors(schema)
        self._found: dict[str, list[JsonValue]] = {}
        try:
            self._flat: int | None = self._widest(schema, inf)
        except _Recursive:
            self._known.clear()
            self._open.clear()
            self._flat = None
            for part in objects(schema):
                self._widest(part, 0)  # raises if the part applies itself without end

    @property
    def is_recursive(self) -> bool:
        """Whether the width depends on the value's depth."""
        return self._flat is None

    def at(self, depth: int) -> float:
        """Return the width for values with `depth` levels; infinite if that is too deep."""
        if self._flat is not None:
            return self._flat
        if depth > DEEPEST:
            return inf
        try:
            # Add one level at a time: most of what each needs is already cached.
            return [self._widest(self._schema, levels) for levels in range(depth + 1)][-1]
        except RecursionError:
            self._open.clear()
            return inf

    def _widest(self, part: JsonValue, left: float) -> int:
        return max(self._width(part, left, kind) for kind in _KINDS)

    def _width(self, part: JsonValue, left: float, kind: _Kind) -> int:
        """Return the width for a value of this kind with `left` levels below it."""
        if not isinstance(part, dict):
            return 1
        key = id(part), left, kind
        if key in self._known:
            return self._known[key]
        if key in self._open:
            raise _Recursive if left == inf else EndlessSchemaError
        self._open.add(key)
        here = sum(self._width(each, left, kind) for each in self._same_place(part))
        for keyword in _REFERENCES:
            reference = part.get(keyword)
            if isinstance(reference, str):
                # Once for each: every part may have the same one, with a target in every `$id`.
                referred = reference, left, kind
                if referred not in self._known:
                    targets = self._targets(reference)
                    self._known[referred] = sum([self._width(one, left, kind) for one in targets])
                here += self._known[referred]
        if any(keyword in part for keyword in _EVALUATE_AGAIN):
            here *= 2  # it evaluates these again to know what they covered
        below = 0 if left < 1 else self._below(part, left - 1, kind)
        self._open.remove(key)
        self._known[key] = width = min(1 + here + below, _ENOUGH)
        return width

    def _below(self, part: JsonObject, left: float, kind: _Kind) -> int:
        """Return the largest width applied to one place below; each member is its own place."""
        if kind == "object":
            each = _values(part.get("properties"))
            every = [*_values(part.get("patternProperties")), *_members(part, _ANY_MEMBER)]
        else:
            each = [*_elements(part.get("items")), *_elements(part.get("prefixItems"))]
            every = _members(part, _ANY_ITEM)
        most = max((self._widest(one, left) for one in each), default=0)
        return most + sum(self._widest(one, left) for one in every)

    def _same_place(self, part: JsonObject) -> Iterator[JsonValue]:
        yield from _members(part, _SAME_PLACE)
        for keyword in _SAME_PLACE_LISTS:
            yield from _elements(part.get(keyword))
        for keyword in _SAME_PLACE_MAPS:
            yield from (each for each in _values(part.get(keyword)) if isinstance(each, dict))

    def _targets(self, reference: str) -> Sequence[JsonValue]:
        """Return the possible targets of a reference: several, if the schema embeds an `$id`."""
        if (known := self._found.get(reference)) is not None:
            return known
        fragment = unquote(reference.partition("#")[2])
        targets: list[JsonValue] = []
        if fragment and not fragment.startswith("/"):
            targets += self._anchors.get(fragment, ())
        else:
            found = (follow(base, fragment) for base in self._bases)
            targets += [target for is_there, target in found if is_there]
        self._found[reference] = targets
        return targets


def follow(schema: JsonObject, pointer: str) -> tuple[bool, JsonValue]:
    """Follow a JSON pointer (RFC 6901); return whether its target exists, and the target."""
    part: JsonValue = schema
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return False, None
    return True, part


def objects(value: JsonValue) -> Iterator[JsonObject]:
    """Yield every object in a JSON value, at any depth."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left += part.values()
        elif isinstance(part, list):
            left += part


def anchors(schema: JsonObject) -> dict[str, list[JsonObject]]:
    """Return the parts of a schema that have a name which a reference can use, by that name."""
    named: dict[str, list[JsonObject]] = {}
    for part in objects(schema):
        names = [name for key in _ANCHORS if isinstance(name := part.get(key), str)]
        for name in {*names}:
            named.setdefault(name, []).append(part)
    return named


def _resources(schema: JsonObject) -> list[JsonObject]:
    """Return the parts that have their own `$id`, relative to which references resolve."""
    return [
        part for part in objects(schema) if part is not schema and isinstance(part.get("$id"), str)
    ]


def _members(part: JsonObject, keywords: Iterable[str]) -> list[JsonValue]:
    return [part[keyword] for keyword in keywords if isinstance(part.get(keyword), dict | bool)]


def _values(part: JsonValue) -> list[JsonValue]:
    return list(part.values()) if isinstance(part, dict) else []


def _elements(part: JsonValue) -> list[JsonValue]:
    return part if isinstance(part, list) else []
