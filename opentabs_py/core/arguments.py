"""Check the arguments of a call against its tool's input schema."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from opentabs_py.core import failures
from opentabs_py.core.json_numbers import inexact_number
from opentabs_py.core.schemas.checker import Checker, JsonObject, Violation
from opentabs_py.core.text import did_you_mean, nearest, path_text, shorten
from opentabs_py.errors import CallRefusedError

MAX_VIOLATIONS: Final = 5  # reported per call; an agent fixes them one at a time anyway
MAX_NAMES: Final = 20  # argument names listed in the error for an unknown argument

_LONG_NUMBER: Final = re.compile(rb"\d{16}")  # integers with fewer digits are exact in JavaScript
_INEXACT: Final = (
    "the page would not receive this number exactly; pass it as a string, if the tool accepts one"
)

# Each of these may declare arguments in addition to `properties`, or allow any.
_OPEN: Final = (
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "dependencies",
)


class ArgumentReader:
    """Validates the arguments of one tool.

    Args:
        tool: The tool's name, used in errors.
        schema: The tool's input schema.
        limit: Maximum size of the arguments, in characters of JSON.
        in_page: Whether it runs in a page, whose numbers are JavaScript's.
    """

    def __init__(self, tool: str, schema: JsonObject, *, limit: int, in_page: bool = False) -> None:
        self._tool = tool
        self._limit = limit
        self._in_page = in_page
        self._checker = Checker(schema)
        self._names = _members(schema)
        self._required = _texts(schema.get("required"))
        self._is_closed = is_closed(schema)
        self._takes_null: dict[str, bool] = {}

    def read(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Return the arguments as the tool accepts them.

        A null for an optional argument that cannot be null counts as omitted, because some
        clients send every argument that a schema names.

        Raises:
            CallRefusedError: They are too large, or the tool does not accept them.
        """
        # First, because validation cannot handle arbitrary depth.
        text = check_size(self._tool, arguments, limit=self._limit)
        given = dict(arguments)
        if None in given.values():
            given = {
                name: value
                for name, value in given.items()
                if value is not None or not self._may_leave_out(name)
            }
        violations: list[Violation] = []
        if self._in_page and _may_be_inexact(text) and (path := inexact_number(given)):
            violations = [(path_text(path), _INEXACT)]
        if self._is_closed and not self._names >= given.keys():
            unknown = [name for name in given if name not in self._names]
            violations += [(shorten(name), self._hint(name)) for name in unknown[:MAX_VIOLATIONS]]
            given = {name: given[name] for name in given if name in self._names}
        try:
            found = self._checker.violations(given, most=MAX_VIOLATIONS)
        except ValueError as error:  # such as a set, which to_json accepts
            raise _not_json(self._tool, error) from None
        known = {path for path, _ in violations}  # NaN, which is null in JSON, has one already
        violations += [each for each in found if each[0] not in known]
        if violations:
            raise failures.invalid_arguments(self._tool, violations[:MAX_VIOLATIONS])
        return given

    def _may_leave_out(self, name: str) -> bool:
        if name not in self._names or name in self._required:
            return False
        if name not in self._takes_null:
            here = path_text([name])
            self._takes_null[name] = all(
                path != here for path, _ in self._checker.violations({name: None})
            )
        return not self._takes_null[name]

    def _hint(self, name: str) -> str:
        if hint := did_you_mean(nearest(name, self._names)):
            return f"there is no such argument ({hint})"
        names = sorted(self._names)
        more = ", …" if len(names) > MAX_NAMES else ""
        listed = ", ".join(names[:MAX_NAMES]) + more if names else "no arguments"
        return f"there is no such argument; the tool takes {listed}"


def check_names(tool: str, arguments: object) -> None:
    """Refuse arguments that are not a mapping by name; a program may pass anything.

    Args:
        tool: The tool's name, used in errors.
        arguments: The arguments.

    Raises:
        CallRefusedError: They are something else.
    """
    if not isinstance(arguments, Mapping):
        wrong = f"its type is {type(arguments).__name__}; pass a dict of arguments by name"
        raise failures.invalid_arguments(tool, [("", wrong)])
    for name in cast("Mapping[object, Any]", arguments):
        if not isinstance(name, str):
            wrong = f"the name {shorten(repr(name))} is not a string"
            raise failures.invalid_arguments(tool, [("", wrong)])


def check_size(tool: str, arguments: Mapping[str, Any], *, limit: int) -> bytes:
    """Return arguments as JSON, unless they are too large.

    Args:
        tool: The tool's name, used in errors.
        arguments: The arguments.
        limit: Their maximum size, in characters of JSON.

    Raises:
        CallRefusedError: They are too large, or not JSON.
    """
    try:
        text = to_json(arguments)
    except (PydanticSerializationError, ValueError) as error:
        raise _not_json(tool, error) from None
    # Never fewer bytes than characters, and counting characters takes longer.
    if len(text) > limit and (size := len(text.decode())) > limit:
        raise failures.input_too_large(tool, size, limit)
    return text


def is_closed(schema: JsonObject) -> bool:
    """Return whether a tool accepts only the `properties` of its input schema.

    JSON Schema allows additional properties by default, so a misspelled argument would be
    ignored. A schema therefore counts as closed unless something in it allows more.
    """
    if schema.get("additionalProperties") is False:
        return "patternProperties" not in schema
    return "properties" in schema and not any(keyword in schema for keyword in _OPEN)


def _not_json(tool: str, error: Exception) -> CallRefusedError:
    return failures.invalid_arguments(tool, [("", f"not serializable as JSON: {error}")])


def _may_be_inexact(text: bytes) -> bool:
    """Return whether JSON may have a number that is inexact in a page; to find it takes longer."""
    return _LONG_NUMBER.search(text) is not None or b"NaN" in text or b"Infinity" in text


def _texts(value: JsonValue) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, list) else frozenset()


def _members(schema: JsonObject) -> frozenset[str]:
    properties = schema.get("properties")
    return frozenset(properties) if isinstance(properties, dict) else frozenset()
