"""JSON Schemas of tools: what is wrong with one, and what of a value breaks one."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final
from urllib.parse import unquote

import jsonschema_rs
from pydantic import JsonValue

from opentabs_py.core.schema_cost import (
    EndlessSchemaError,
    JsonObject,
    Widths,
    follow,
    objects,
)
from opentabs_py.core.text import path_text, shorten

__all__ = ["Checker", "Fault", "JsonObject", "check_schema"]

Fault = tuple[str, str]
"""Where a value breaks its schema, as `messages[0].text` ("" is all of it), and how."""

# The validator holds the event loop, and nothing interrupts it. Measured: 13 to 40 ns for one look
# at one place, so the longest check takes 2 s; 6 to 60 µs for a fault, which copies what is wrong.
WIDEST: Final = 100_000  # looks at one place of a value with LOAD_DEPTH levels
LOAD_DEPTH: Final = 4
MOST_LOOKS: Final = 50_000_000
MOST_LOOKS_FOR_FAULTS: Final = 50_000
MOST_COPIED: Final = 64 * 1024 * 1024  # characters, in faults

_TOO_DEEP: Final = "is nested too deeply; write its parts into $defs and $ref them"
_NARROW: Final = 64  # a check of that width costs less than reading the value did
# A pattern with look-around or a back reference may try again from where it was: this often.
_BACKTRACKS: Final = 1000
_LOOKS_OF_CHARACTER: Final = 64  # what such a pattern may cost for each character of a text
_CHARACTERS_A_LOOK: Final = 32  # what any other pattern reads in the time of one


class Checker:
    """Checks values against one schema; 2020-12 where the schema names no dialect.

    Args:
        schema: One that `check_schema` found fit.
    """

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._validator = _compile(schema)

    def faults(self, value: JsonValue, *, most: int | None = None) -> list[Fault]:
        """Return where a JSON value breaks the schema; an empty list when it does not.

        A value that would take too long to check is one fault.
        """
        validator = self._validator
        if not self._is_quick:
            size = _measure(value, most=MOST_LOOKS)
            width = self._widths.at(size.depth)
            if width * (size.parts + size.length // _CHARACTERS_A_LOOK) > MOST_LOOKS:
                return [("", "too large, or too deeply nested, to be checked; pass less at once")]
            if width * size.length * _LOOKS_OF_CHARACTER > MOST_LOOKS:
                validator = self._lenient
        if validator.is_valid(value):  # several times quicker than looking for faults
            return []
        size = _measure(value, most=MOST_LOOKS_FOR_FAULTS)
        width = self._widths.at(size.depth)
        copied = width * (size.depth + 1) * size.length
        if width * size.parts > MOST_LOOKS_FOR_FAULTS or copied > MOST_COPIED:
            return [("", "something in it is wrong; it is too large to say where")]
        errors = islice(validator.iter_errors(value), most)
        return [(path_text(error.instance_path), _shorten(error.message)) for error in errors]

    @cached_property
    def _widths(self) -> Widths:
        return Widths(self._schema)

    @cached_property
    def _is_quick(self) -> bool:
        return self._widths.at(0) <= _NARROW and not (
            self._widths.is_recursive or any(map(_backtracks, _patterns(self._schema)))
        )

    @cached_property
    def _lenient(self) -> jsonschema_rs.Validator:
        """Leaves out the patterns that may backtrack."""
        return _compile(_without_backtracking(self._schema))


def check_schema(schema: JsonObject) -> None:
    """Refuse what is no JSON Schema, or one that could not be applied to a value.

    Raises:
        ValueError: It says what is wrong and what to write instead.
    """
    for reference in _references(schema):
        quoted = repr(shorten(reference))
        if not reference.startswith("#"):
            raise ValueError(
                f"refers to {quoted} outside itself; copy what that says into its $defs"
            )
        if not _is_held(schema, unquote(reference[1:])):
            raise ValueError(f"refers to {quoted}, which it does not hold; add it there")
    try:
        _compile(schema)
    except jsonschema_rs.ValidationError as error:
        where = path_text(error.instance_path) or "its root"
        raise ValueError(
            f"is no JSON Schema at {where}: {shorten(error.message)}; correct it there"
        ) from None
    except ValueError:  # the recursion limit
        raise ValueError(_TOO_DEEP) from None
    try:
        width = Widths(schema).at(LOAD_DEPTH)
    except EndlessSchemaError:
        raise ValueError(
            "applies itself without end to one place; refer to it from properties or items only"
        ) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if width > WIDEST:
        raise ValueError(
            f"would be applied {width:,} times to one place of a value, through its references "
            f"and alternatives; {WIDEST:,} times are allowed, so name each alternative once"
        )


@dataclass(frozen=True, slots=True)
class _Size:
    """How large a value is.

    Attributes:
        parts: It, and all values within it.
        depth: How many levels of objects and arrays it has.
        length: The characters of its texts and keys.
    """

    parts: int
    depth: int
    length: int


def _measure(value: JsonValue, *, most: int) -> _Size:
    """Return a value's size; the levels below the one on which it has more parts are left out."""
    parts = depth = length = 0
    level = [value]
    while level and parts <= most:
        parts += len(level)
        below: list[JsonValue] = []
        for part in level:
            if isinstance(part, str):
                length += len(part)
            elif isinstance(part, dict):
                below += part.values()
                length += sum(map(len, part))
            elif isinstance(part, list):
                below += part
        level = below
        depth += bool(level)
    return _Size(parts, depth, length)


def _patterns(schema: JsonObject) -> Iterator[str]:
    for part in objects(schema):
        pattern, by_pattern = part.get("pattern"), part.get("patternProperties")
        if isinstance(pattern, str):
            yield pattern
        if isinstance(by_pattern, dict):
            yield from by_pattern


def _backtracks(pattern: str) -> bool:
    """Return whether a pattern is beyond what can be matched in linear time."""
    options = jsonschema_rs.RegexOptions()
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except (jsonschema_rs.ValidationError, ValueError):
        return True
    return False


def _without_backtracking(schema: JsonObject) -> JsonObject:
    schema = deepcopy(schema)
    for part in list(objects(schema)):
        pattern, by_pattern = part.get("pattern"), part.get("patternProperties")
        if isinstance(pattern, str) and _backtracks(pattern):
            del part["pattern"]
        if isinstance(by_pattern, dict) and any(map(_backtracks, by_pattern)):
            # These three are about which members there are besides.
            for keyword in ("patternProperties", "additionalProperties", "unevaluatedProperties"):
                part.pop(keyword, None)
    return schema


def _shorten(message: str) -> str:
    """Cut what is quoted of a long value, which comes first, and keep the rule, which ends it."""
    return message if len(message) <= 300 else f"{message[:100]} … {message[-199:]}"


def _compile(schema: JsonObject) -> jsonschema_rs.Validator:
    dialect = jsonschema_rs.validator_cls_for(schema)
    # What `format` says is a hint, as the specification has it; nothing is fetched.
    return dialect(
        schema,
        validate_formats=False,
        offline=True,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS),
    )


def _references(schema: JsonObject) -> Iterator[str]:
    for part in objects(schema):
        for keyword in ("$ref", "$dynamicRef"):
            reference = part.get(keyword)
            if isinstance(reference, str):
                yield reference


def _is_held(schema: JsonObject, fragment: str) -> bool:
    if fragment and not fragment.startswith("/"):
        return any(fragment in (o.get("$anchor"), o.get("$dynamicAnchor")) for o in objects(schema))
    return follow(schema, fragment)[0]
