"""How much work a JSON Schema can make of a value, at most, before anything is checked.

A schema of 3 KB can ask for 2^34 looks at one value: `allOf` with the same `$ref` twice, 34 levels
deep. Nothing interrupts the validator, so what it would do is bounded before it starts.

The *width* of a schema is how often it looks at any one place of a value: the sum over what it
applies to the same place, and the most that it applies to a place below. A value cannot cost more
looks than the width times its own parts. Schemas of recursive data may become wider with each
level of the value, so the width of those depends on its depth.
"""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, Literal
from urllib.parse import unquote

from pydantic import JsonValue

JsonObject = dict[str, JsonValue]

_Kind = Literal["object", "array"]
_Key = tuple[int, float, _Kind]
_KINDS: Final[tuple[_Kind, ...]] = ("object", "array")

DEEPEST: Final = 64  # levels of a value that a recursive schema is followed into

_ENOUGH: Final = 10**18  # no use to count on

_SAME_PLACE: Final = ("not", "if", "then", "else")
_SAME_PLACE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_SAME_PLACE_MAPS: Final = ("dependentSchemas", "dependencies")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANY_MEMBER: Final = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ANY_ITEM: Final = ("items", "additionalItems", "unevaluatedItems", "contains")
_EVALUATE_AGAIN: Final = ("unevaluatedProperties", "unevaluatedItems")


class EndlessSchemaError(ValueError):
    """A schema applies itself to the place it is at."""


class _Recursive(Exception):  # noqa: N818 (nobody sees it)
    """A schema applies itself to a place below."""


class Widths:
    """Computes how often a schema looks at one place of a value.

    Args:
        schema: References that it does not hold count nothing.

    Raises:
        EndlessSchemaError: It refers to itself without a step into the value.
        RecursionError: It is nested too deeply.
    """

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._known: dict[_Key, int] = {}
        self._open: set[_Key] = set()
        self._bases = [schema, *_resources(schema)]
        try:
            self._flat: int | None = self._widest(schema, inf)
        except _Recursive:
            self._known.clear()
            self._open.clear()
            self._flat = None
            for part in objects(schema):
                self._widest(part, 0)  # finds what has no end at one place

    @property
    def is_recursive(self) -> bool:
        """Whether the width depends on the value's depth."""
        return self._flat is None

    def at(self, depth: int) -> float:
        """Return the width for values of so many levels; infinite where it is too deep to say."""
        if self._flat is not None:
            return self._flat
        if depth > DEEPEST:
            return inf
        try:
            # One level more at a time: each finds most of what it needs already known.
            return [self._widest(self._schema, levels) for levels in range(depth + 1)][-1]
        except RecursionError:
            self._open.clear()
            return inf

    def _widest(self, part: JsonValue, left: float) -> int:
        return max(self._width(part, left, kind) for kind in _KINDS)

    def _width(self, part: JsonValue, left: float, kind: _Kind) -> int:
        """Return the width for a value of this kind, of which `left` levels are below."""
        if not isinstance(part, dict):
            return 1
        key = id(part), left, kind
        if key in self._known:
            return self._known[key]
        if key in self._open:
            raise _Recursive if left == inf else EndlessSchemaError
        self._open.add(key)
        here = sum(self._width(each, left, kind) for each in self._same_place(part))
        if any(keyword in part for keyword in _EVALUATE_AGAIN):
            here *= 2  # it finds out again what these saw
        below = 0 if left < 1 else self._below(part, left - 1, kind)
        self._open.remove(key)
        self._known[key] = width = min(1 + here + below, _ENOUGH)
        return width

    def _below(self, part: JsonObject, left: float, kind: _Kind) -> int:
        """Return the most that is applied to one place below; two members are two places."""
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
        for keyword in _REFERENCES:
            reference = part.get(keyword)
            if isinstance(reference, str):
                yield from self._targets(reference)

    def _targets(self, reference: str) -> Iterator[JsonValue]:
        """Return what a reference may stand for: with an `$id` within, that is more than one."""
        fragment = unquote(reference.partition("#")[2])
        if fragment and not fragment.startswith("/"):
            for part in objects(self._schema):
                if fragment in (part.get("$anchor"), part.get("$dynamicAnchor")):
                    yield part
            return
        for base in self._bases:
            found, target = follow(base, fragment)
            if found:
                yield target


def follow(schema: JsonObject, pointer: str) -> tuple[bool, JsonValue]:
    """Follow a JSON pointer (RFC 6901); return whether there is something, and what."""
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
    """Return every object within a JSON value, however deep."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left += part.values()
        elif isinstance(part, list):
            left += part


def _resources(schema: JsonObject) -> list[JsonObject]:
    """Return the parts with an `$id` of their own, which their references start from."""
    return [
        part for part in objects(schema) if part is not schema and isinstance(part.get("$id"), str)
    ]


def _members(part: JsonObject, keywords: Iterable[str]) -> list[JsonValue]:
    return [part[keyword] for keyword in keywords if isinstance(part.get(keyword), dict | bool)]


def _values(part: JsonValue) -> list[JsonValue]:
    return list(part.values()) if isinstance(part, dict) else []


def _elements(part: JsonValue) -> list[JsonValue]:
    return part if isinstance(part, list) else []
