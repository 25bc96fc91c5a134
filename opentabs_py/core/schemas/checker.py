"""Validate the JSON Schemas of tools, and values against them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final
from urllib.parse import unquote

import jsonschema_rs
from pydantic import JsonValue

from opentabs_py.core.schemas.alternatives import explain
from opentabs_py.core.schemas.cost import (
    EndlessSchemaError,
    JsonObject,
    Widths,
    anchors,
    follow,
    objects,
)
from opentabs_py.core.schemas.patterns import as_in_javascript, is_linear, patterns, with_patterns
from opentabs_py.core.text import path_text, shorten

__all__ = ["Checker", "JsonObject", "Violation", "check_schema"]

Violation = tuple[str, str]
"""The path at which a value breaks its schema, as `messages[0].text` ("" for all), and how."""

# The validator blocks the event loop and cannot be interrupted. Measured: 13 to 40 ns per check of
# one place, so the longest validation takes 2 s; 6 to 60 µs per
# violation, which copies the bad value.
WIDEST: Final = 100_000  # checks of one place in a value with LOAD_DEPTH levels
LOAD_DEPTH: Final = 4
MOST_LOOKS: Final = 50_000_000
MOST_LOOKS_FOR_VIOLATIONS: Final = 50_000
MOST_COPIED: Final = 64 * 1024 * 1024  # characters, in violations

_TOO_DEEP: Final = "is nested too deeply; move parts of it into $defs and $ref them"
# What JavaScript's regular expressions have and the validator's have not.
_OTHER_SYNTAX: Final = (
    r"write what both support ([\s\S] for [^], \1 for \k<name>, \x00 for \0, [\x08] for [\b]), or "
    "leave it out of the schema and check it in the tool, as Zod does with .refine()"
)
_NARROW: Final = 64  # validating at this width costs less than parsing the value did
# A pattern with look-around or a back reference may backtrack, this often.
_BACKTRACKS: Final = 1000
_LOOKS_OF_CHARACTER: Final = 64  # the cost of such a pattern per character of a string
_CHARACTERS_A_LOOK: Final = 32  # characters any other pattern reads in the time of one check


class Checker:
    """Validates values against one schema; 2020-12 unless the schema names a dialect.

    Args:
        schema: A schema that passed `check_schema`.
        mask: What violations say in place of the bad value; None to show it.
    """

    def __init__(self, schema: JsonObject, *, mask: str | None = None) -> None:
        self._given = schema
        self._mask = mask

    def violations(self, value: JsonValue, *, most: int | None = None) -> list[Violation]:
        """Return where a JSON value violates the schema; an empty list if it matches.

        A value that would take too long to validate counts as one violation.
        """
        validator = self._validator
        if not self._is_quick:
            size = _measure(value, most=MOST_LOOKS)
            width = self._widths.at(size.depth)
            if width * (size.parts + size.length // _CHARACTERS_A_LOOK) > MOST_LOOKS:
                return [("", "too large or too deeply nested to validate; pass less at a time")]
            if width * size.length * _LOOKS_OF_CHARACTER > MOST_LOOKS:
                validator = self._lenient
        if validator.is_valid(value):  # several times faster than looking for violations
            return []
        size = _measure(value, most=MOST_LOOKS_FOR_VIOLATIONS)
        width = self._widths.at(size.depth)
        copied = width * (size.depth + 1) * size.length
        if width * size.parts > MOST_LOOKS_FOR_VIOLATIONS or copied > MOST_COPIED:
            return [("", "does not match the schema, and is too large to say where")]
        errors = validator.iter_errors(value)
        faults = (fault for error in errors for fault in explain(error, self._schema))
        return [(path_text(path), _shorten(message)) for path, message in islice(faults, most)]

    @cached_property
    def _schema(self) -> JsonObject:
        return as_in_javascript(self._given)

    @cached_property
    def _validator(self) -> jsonschema_rs.Validator:
        """Compiled when first needed: most tools of a server are never called."""
        return _compile(self._schema, self._mask)

    @cached_property
    def _widths(self) -> Widths:
        return Widths(self._schema)

    @cached_property
    def _is_quick(self) -> bool:
        is_narrow = self._widths.at(0) <= _NARROW and not self._widths.is_recursive
        return is_narrow and all(map(is_linear, patterns(self._schema)))

    @cached_property
    def _lenient(self) -> jsonschema_rs.Validator:
        """A validator without the patterns that may backtrack."""
        return _compile(with_patterns(self._schema, is_linear), self._mask)


def check_schema(schema: JsonObject) -> None:
    """Check that a schema is valid JSON Schema and can be applied to values.

    Raises:
        ValueError: It is not; the text says what is wrong and what to write instead.
    """
    named = anchors(schema)
    for reference in _references(schema):
        quoted = repr(shorten(reference))
        if not reference.startswith("#"):
            raise ValueError(f"refers to {quoted} outside itself; copy that schema into its $defs")
        fragment = unquote(reference[1:])
        is_pointer = not fragment or fragment.startswith("/")
        if not (follow(schema, fragment)[0] if is_pointer else fragment in named):
            raise ValueError(f"refers to {quoted}, which it does not contain; add it")
    try:
        _compile(as_in_javascript(schema))
    except jsonschema_rs.ValidationError as error:
        raise ValueError(_why_not_valid(error)) from None
    except ValueError:  # the recursion limit
        raise ValueError(_TOO_DEEP) from None
    try:
        width = Widths(schema).at(LOAD_DEPTH)
    except EndlessSchemaError:
        raise ValueError(
            "applies itself endlessly to the same place; refer to it only from properties or items"
        ) from None
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if width > WIDEST:
        raise ValueError(
            f"would be applied {width:,} times to one place in a value, through its references "
            f"and alternatives; at most {WIDEST:,} are allowed, so name each alternative once"
        )


def _why_not_valid(error: jsonschema_rs.ValidationError) -> str:
    where = path_text(error.instance_path) or "its root"
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Format):  # only patterns have one
        return (
            f"has at {where} the regular expression {shorten(str(error.instance))!r}, which the "
            f"server cannot check. Correct it. If it is right in JavaScript, {_OTHER_SYNTAX}"
        )
    return f"is not valid JSON Schema at {where}: {shorten(error.message)}; correct it there"


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a value.

    Attributes:
        parts: The number of values in it, including itself.
        depth: How many levels of objects and arrays it has.
        length: The characters of its strings and keys.
    """

    parts: int
    depth: int
    length: int


def _measure(value: JsonValue, *, most: int) -> _Size:
    """Return a value's size, ignoring the levels below the one that exceeds `most` parts."""
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


def _shorten(message: str) -> str:
    """Shorten the quoted value at the start of a message, and keep the rule at its end."""
    return message if len(message) <= 300 else f"{message[:100]} … {message[-199:]}"


def _compile(schema: JsonObject, mask: str | None = None) -> jsonschema_rs.Validator:
    dialect = jsonschema_rs.validator_cls_for(schema)
    # `format` is only a hint, as in the specification; nothing is fetched.
    return dialect(
        schema,
        mask=mask,
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
