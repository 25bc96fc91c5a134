"""The regular expressions in a schema, and the schema without some of them."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import jsonschema_rs
from pydantic import JsonValue

from opentabs_py.core.schemas.cost import JsonObject, objects

# What of the patterns in a page's schema is checked: compiling blocks the event loop, and takes up
# to 150 ms and 10 MB for a pattern of ten characters.
MOST_CHARACTERS: Final = 2_000  # of all its patterns
LARGEST: Final = 64 * 1024  # bytes of a pattern, compiled; one for dates with leap years takes 50

# In JavaScript, these are the characters; to the validator, the boundaries of a word.
_BRACKETS: Final = re.compile(r"\\([<>])|\\.", re.DOTALL)
_NAMED: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
_DATA: Final = frozenset({"const", "enum", "default", "examples"})


def patterns(schema: JsonObject) -> Iterator[str]:
    """Yield every regular expression of a schema."""
    for part in objects(schema):
        pattern, by_pattern = part.get("pattern"), part.get("patternProperties")
        if isinstance(pattern, str):
            yield pattern
        if isinstance(by_pattern, dict):
            yield from by_pattern


def is_linear(pattern: str) -> bool:
    """Return whether a pattern can be matched in linear time."""
    return _compiles(pattern, jsonschema_rs.RegexOptions())


def as_in_javascript(schema: JsonObject) -> JsonObject:
    r"""Return a schema whose patterns mean to the validator what they mean in JavaScript: `\<`."""
    if any(r"\<" in pattern or r"\>" in pattern for pattern in patterns(schema)):
        return _map(
            schema, lambda pattern: _BRACKETS.sub(lambda found: found[1] or found[0], pattern)
        )
    return schema


def with_small_patterns(schema: JsonObject) -> JsonObject:
    """Return a page's schema with only those patterns that take little to compile.

    The others, and those that only JavaScript supports, are left to the page.
    """
    left = MOST_CHARACTERS
    options = jsonschema_rs.FancyRegexOptions(size_limit=LARGEST)

    def keeps(pattern: str) -> bool:
        nonlocal left
        left -= len(pattern)
        return left >= 0 and _compiles(pattern, options)

    return with_patterns(as_in_javascript(schema), keeps)


def with_supported_patterns(schema: JsonObject) -> JsonObject:
    """Return a page's schema without the patterns that only JavaScript supports."""
    options = jsonschema_rs.FancyRegexOptions()
    return with_patterns(as_in_javascript(schema), lambda pattern: _compiles(pattern, options))


def with_patterns(schema: JsonObject, keeps: Callable[[str], bool]) -> JsonObject:
    """Return a schema with only those patterns that `keeps` accepts."""
    return _map(schema, lambda pattern: pattern if keeps(pattern) else None)


def _map(schema: JsonObject, change: Callable[[str], str | None]) -> JsonObject:
    """Return a schema whose patterns are changed; those that become None are left out."""
    part = {name: _map_member(name, value, change) for name, value in schema.items()}
    pattern, by_pattern = part.get("pattern"), part.get("patternProperties")
    if isinstance(pattern, str):
        if (changed := change(pattern)) is None:
            del part["pattern"]
        else:
            part["pattern"] = changed
    if isinstance(by_pattern, dict):
        changed_names = {name: change(name) for name in by_pattern}
        if None in changed_names.values():
            # Which members these two are about depends on it.
            del part["patternProperties"]
            part.pop("unevaluatedProperties", None)
            part["additionalProperties"] = True
        else:
            part["patternProperties"] = {
                changed_names[name] or name: each for name, each in by_pattern.items()
            }
    return part


def _map_member(name: str, value: JsonValue, change: Callable[[str], str | None]) -> JsonValue:
    """Return a member of a schema whose patterns are changed."""
    if name in _DATA:
        return value
    if isinstance(value, list):
        return [_map_member("", each, change) for each in value]
    if not isinstance(value, dict):
        return value
    if name in _NAMED:
        return {key: _map_member("", each, change) for key, each in value.items()}
    return _map(value, change)


def _compiles(
    pattern: str, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True
