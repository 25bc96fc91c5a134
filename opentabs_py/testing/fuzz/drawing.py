"""Draw values that a JSON Schema accepts: its edges, Unicode, empty and huge arrays, recursion.

Every keyword guides what is drawn as far as it easily can, and the validator of the server decides:
it drops what a keyword like `not` forbids. So each drawn value is valid, whatever the schema says.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import ceil, inf
from typing import Any, Final, cast
from urllib.parse import unquote

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning, InvalidArgument, NoSuchExample, Unsatisfiable
from hypothesis.strategies import SearchStrategy

from opentabs_py.core.schemas.checker import Checker
from opentabs_py.core.schemas.cost import follow, objects
from opentabs_py.core.schemas.patterns import with_supported_patterns
from opentabs_py.testing.fuzz.merging import (
    DEPENDENTS,
    Schema,
    dependents_of,
    flatten,
    merge,
    types_of,
    without,
)
from opentabs_py.testing.fuzz.numeric import integers, numbers
from opentabs_py.testing.fuzz.patterns import matching, strings, text
from opentabs_py.testing.fuzz.values import key_of, unique_key

Drawn = SearchStrategy[Any]

DEEP: Final = 4  # levels from which only what is required is drawn, so that recursion ends
DEEPEST: Final = 12  # levels that a schema may require
HUGE: Final = 1_000  # items of an array, or members of an object
# Of an array that repeats an item, as JSON; several of them may be in one value.
_MOST_CHARACTERS: Final = 1_000_000
_FEW: Final = 5  # items in an array that is not huge, and members that a schema does not name
_SPLIT: Final = 4  # members on which others depend that are drawn in all combinations
HEALTH_CHECKS: Final[Any] = list(HealthCheck)  # they are about tests that users write
_ATTEMPTS: Final = settings(
    max_examples=100,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=HEALTH_CHECKS,
)
_ROOT: Final = "whole"  # where a part that is validated on its own finds the whole schema
# Keywords that are fully followed when a value is drawn; all others need the validator.
_FOLLOWED: Final = frozenset(
    {
        *("$schema", "$defs", "definitions", "$id", "$comment", "title", "description", "default"),
        *("examples", "deprecated", "readOnly", "writeOnly", "type", "properties", "items"),
        *("prefixItems", "enum", "const", "anyOf", "minItems", "maxItems"),
    }
)


def values_of(schema: Schema) -> Drawn:
    """Return a strategy for the values that a schema accepts; empty if there are none.

    Args:
        schema: A schema that passed `check_schema`, or that of a page's tool: the page checks the
            regular expressions that only JavaScript supports.
    """
    schema = with_supported_patterns(schema)
    checker = Checker(schema)
    drawn = _Drawing(schema).values(schema, 0)
    return drawn.filter(lambda value: not checker.violations(value, most=1))


def undrawn(schema: Schema) -> list[str]:
    """Return the required members of which no value can be drawn, or hardly any."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    alone = {
        name: values_of(
            {**schema, "properties": {name: properties.get(name, True)}, "required": [name]}
        )
        for name in schema.get("required", [])
    }
    return [name for name, drawn in alone.items() if drawn.is_empty or not _can_draw(drawn)]


def _can_draw(drawn: Drawn) -> bool:
    """Return whether one of some attempts draws a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)  # the repr of a strategy may be long
        try:
            find(drawn, lambda _: True, settings=_ATTEMPTS)
        except (NoSuchExample, Unsatisfiable):
            return False
    return True


class _Drawing:
    """Makes strategies for the parts of one schema."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._known: dict[tuple[str, int], Drawn] = {}

    def values(self, part: Any, depth: int) -> Drawn:
        """Return a strategy for a part of the schema, `depth` levels below the top of the value."""
        if part is False or depth > DEEPEST:
            return st.nothing()
        if part is True or part == {}:
            return _anything(0 if depth >= DEEP else 2)
        key = key_of(part), depth
        if key not in self._known:
            self._known[key] = self._checked(part, depth)
        return self._known[key]

    def _checked(self, part: Schema, depth: int) -> Drawn:
        flat = flatten(part, self._follow)
        if flat is None:
            return st.nothing()
        drawn = self._drawn(flat, depth)
        if drawn.is_empty or flat.keys() <= _FOLLOWED:
            return drawn
        checker = self._checker(part)
        return drawn.filter(lambda value: not checker.violations(value, most=1))

    def _drawn(self, flat: Schema, depth: int) -> Drawn:
        """Return a strategy for a flat schema; what it draws may violate the schema."""
        if "const" in flat:
            return st.just(flat["const"])
        if "enum" in flat:
            # 1 and 1.0 are equal in JSON Schema, but not to Hypothesis.
            different = {unique_key(value): value for value in flat["enum"]}
            return st.sampled_from([*different.values()]) if different else st.nothing()
        for keyword in ("anyOf", "oneOf"):
            if keyword in flat:
                rest = without(flat, keyword)
                return _any_of([self._both(rest, each, depth) for each in flat[keyword]])
        if "if" in flat:
            rest = without(flat, "if", "then", "else")
            met = {"allOf": [flat["if"], flat.get("then", True)]}
            return _any_of(
                [
                    self._both(rest, met, depth),
                    self._both(rest, flat.get("else", True), depth),
                ]
            )
        if dependents := dependents_of(flat):
            return self._with_dependents(without(flat, *DEPENDENTS), dependents, depth)
        if "allOf" in flat:  # what flatten() could not merge while another keyword was in the way
            return self._both(without(flat, "allOf"), {"allOf": flat["allOf"]}, depth)
        return _any_of([self._of_type(kind, flat, depth) for kind in types_of(flat)])

    def _with_dependents(
        self, rest: Schema, dependents: Mapping[str, Sequence[Any]], depth: int
    ) -> Drawn:
        """Draw objects with and without each member on which something depends."""
        names = [*dependents][:_SPLIT]
        drawn: list[Drawn] = []
        for choice in product((False, True), repeat=len(names)):
            there = [name for name, is_there in zip(names, choice, strict=True) if is_there]
            case: Schema = {"properties": {name: False for name in names if name not in there}}
            if there:
                parts = [part for name in there for part in dependents[name]]
                case |= {"type": "object", "required": there, "allOf": parts}
            drawn.append(self._both(rest, case, depth))
        return _any_of(drawn)

    def _both(self, rest: Schema, other: Any, depth: int) -> Drawn:
        if other is False:
            return st.nothing()
        flat = {} if other is True else flatten(other, self._follow)
        merged = None if flat is None else merge(rest, flat)
        if merged is None:
            return st.nothing()
        both, later = merged
        return self._drawn({**both, "allOf": [later]} if later else both, depth)

    def _of_type(self, kind: str, flat: Schema, depth: int) -> Drawn:
        match kind:
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "integer":
                return integers(flat)
            case "number":
                return numbers(flat)
            case "string":
                return strings(flat)
            case "array":
                return self._arrays(flat, depth)
            case _:
                return self._objects(flat, depth)

    def _arrays(self, flat: Schema, depth: int) -> Drawn:
        first: Sequence[Any] = flat.get("prefixItems", [])
        rest: Any = flat.get("items", True)
        if isinstance(rest, list):  # as older drafts write it
            first, rest = cast(Sequence[Any], rest), flat.get("additionalItems", True)
        least: int = ceil(flat.get("minItems", 0))
        most: float = flat.get("maxItems", inf)
        if least > most:
            return st.nothing()
        starts = [self.values(each, depth + 1) for each in first[: int(min(most, len(first)))]]
        more = max(0, least - len(starts))
        room = most - len(starts)
        items = self.values(rest, depth + 1)
        if "contains" in flat:
            wanted = self._both(_object_of(rest), flat["contains"], depth + 1)
            items = _any_of([wanted, items])
            wished = ceil(flat.get("minContains", 1))
            more = max(more, int(min(wished, room)) if starts else wished)  # a start may match
        if more > room:
            return st.nothing()
        if room <= 0 or items.is_empty or (depth >= DEEP and more == 0):
            tail = _nothing_or_empty(more)
        else:
            is_unique = flat.get("uniqueItems") is True
            tail = _lists(items, more, room, is_unique=is_unique, may_be_huge=depth <= 1)
        if not starts:
            return tail
        # All that come first, or only as many as there have to be.
        whole = st.builds(_concatenated, st.tuples(*starts), tail)
        fewer = [st.tuples(*starts[:count]).map(list) for count in range(least, len(starts))]
        return _any_of([*fewer, whole])

    def _objects(self, flat: Schema, depth: int) -> Drawn:
        properties: Mapping[str, Any] = flat.get("properties", {})
        others: Any = flat.get("additionalProperties", True)
        required: list[str] = flat.get("required", [])
        least: int = ceil(flat.get("minProperties", 0))
        most: float = flat.get("maxProperties", inf)
        if max(least, len(set(required))) > most:
            return st.nothing()
        must = {
            name: self.values(properties.get(name, others), depth + 1)
            for name in dict.fromkeys(required)
        }
        if any(each.is_empty for each in must.values()):
            return st.nothing()
        may: dict[str, Drawn] = {}
        if depth < DEEP or least > len(must):
            may = {
                name: each
                for name, part in properties.items()
                if name not in must and not (each := self.values(part, depth + 1)).is_empty
            }
        named = st.fixed_dictionaries(must, optional=may)
        lacking = max(0, least - len(must) - len(may))
        is_open = "additionalProperties" in flat
        extras: list[Drawn] = []
        if others is not False and ((is_open and depth < DEEP) or lacking):
            names = flat.get("propertyNames", True)
            keys = self.values({"allOf": [{"type": "string"}, names]}, depth + 1)
            pair = st.tuples(keys, self.values(others, depth + 1))
            extras.append(_members(pair, lacking, most))
            lacking = 0
        by_pattern: Mapping[str, Any] = flat.get("patternProperties", {})
        if (by_pattern and depth < DEEP) or lacking:
            pair = self._by_pattern(by_pattern, depth)
            extras.append(_members(pair, lacking, most))
        if not extras:
            return named
        # What the schema names wins over what it only allows.
        return st.builds(_joined, named, *extras)

    def _by_pattern(self, parts: Mapping[str, Any], depth: int) -> Drawn:
        """Return a strategy for a member whose name matches a pattern, with its name."""
        keys = {pattern: matching(pattern) for pattern in parts}
        return _any_of(
            [
                st.tuples(matched, self.values(parts[pattern], depth + 1))
                for pattern, matched in keys.items()
                if matched is not None
            ]
        )

    def _follow(self, reference: str) -> Any:
        fragment = unquote(reference.partition("#")[2])
        if fragment and not fragment.startswith("/"):
            for part in objects(self._schema):
                if fragment in (part.get("$anchor"), part.get("$dynamicAnchor")):
                    return part
        found, target = follow(self._schema, fragment)
        return target if found else True

    def _checker(self, part: Schema) -> Checker:
        """Return a checker of a part, whose references still mean the whole schema."""
        if part is self._schema:
            return Checker(part)
        own: Schema = {"allOf": [_moved(part)], "$defs": {_ROOT: _moved(self._schema)}}
        if "$schema" in self._schema:
            own["$schema"] = self._schema["$schema"]
        return Checker(own)


def _moved(part: Any) -> Any:
    """Return a part of a schema whose references to the whole lead to where it is moved to."""
    if isinstance(part, list):
        return list(map(_moved, cast(Sequence[Any], part)))
    if not isinstance(part, dict):
        return part
    moved: Schema = {}
    for name, each in cast(Schema, part).items():
        is_reference = name == "$ref" and isinstance(each, str)
        if is_reference and (each == "#" or each.startswith("#/")):
            moved[name] = f"#/$defs/{_ROOT}{each[1:]}"
        elif name not in ("$schema", "$id"):
            moved[name] = each if name in ("enum", "const", "default", "examples") else _moved(each)
    return moved


def _object_of(part: Any) -> Schema:
    return cast(Schema, part) if isinstance(part, dict) else {}


def _any_of(strategies: list[Drawn]) -> Drawn:
    return st.one_of([each for each in strategies if not each.is_empty])


def _anything(levels: int) -> Drawn:
    """Draw any JSON value with at most that many levels of arrays and objects."""
    kinds: list[Drawn] = [
        st.none(),
        st.booleans(),
        integers({}),
        numbers({}),
        text(),
    ]
    if levels > 0:
        below = _anything(levels - 1)
        kinds += [
            st.lists(below, max_size=_FEW),
            st.dictionaries(text(0, 20), below, max_size=_FEW),
        ]
    return st.one_of(kinds)


def _lists(items: Drawn, least: int, most: float, *, is_unique: bool, may_be_huge: bool) -> Drawn:
    few = int(min(most, max(least, _FEW)))
    if is_unique:
        return st.deferred(lambda: _unique_lists(items, least, few))
    largest = int(min(most, max(HUGE, least)))
    count = st.integers(min(max(1, least), largest), largest)
    huge = st.builds(_repeated, items, st.just(least), count)
    if least >= HUGE:  # Hypothesis draws no more than some thousands one by one
        return huge
    some = st.lists(items, min_size=least, max_size=few)
    if not may_be_huge or most <= few:
        return some
    return st.one_of(some, some, some, huge)


def _unique_lists(items: Drawn, least: int, most: int) -> Drawn:
    drawn = st.lists(items, min_size=least, max_size=most, unique_by=unique_key)
    try:
        drawn.validate()
    except InvalidArgument:  # there are fewer values than that
        return st.nothing()
    return drawn


def _members(pair: Drawn, least: int, most: float) -> Drawn:
    """Return a strategy for objects whose members are drawn as pairs of name and value."""
    if pair.is_empty:
        return st.just({}) if least == 0 else st.nothing()
    few = int(min(most, max(least, _FEW)))
    return st.lists(pair, min_size=least, max_size=few, unique_by=_name_of).map(dict)


def _name_of(pair: tuple[str, Any]) -> str:
    return pair[0]


def _nothing_or_empty(least: int) -> Drawn:
    if least > 0:
        return st.nothing()
    return st.lists(st.nothing(), max_size=0)


def _repeated(item: Any, least: int, wanted: int) -> list[Any]:
    """Return a list of the wanted length, or of a smaller one if it would be too large."""
    return [item] * min(wanted, max(1, least, _MOST_CHARACTERS // len(key_of(item))))


def _concatenated(start: Iterable[Any], end: Iterable[Any]) -> list[Any]:
    return [*start, *end]


def _joined(named: dict[str, Any], *extras: dict[str, Any]) -> dict[str, Any]:
    joined = dict(named)
    for each in extras:
        joined.update({name: value for name, value in each.items() if name not in named})
    return joined
