"""JSON Schemas of tools: what is wrong with one, and what of a value breaks one."""

from collections.abc import Iterator
from itertools import islice
from urllib.parse import unquote

import jsonschema_rs
from pydantic import JsonValue

from opentabs_py.core.text import path_text, shorten

JsonObject = dict[str, JsonValue]
Fault = tuple[str, str]
"""Where a value breaks its schema, as `messages[0].text` ("" is all of it), and how."""


class Checker:
    """Checks values against one schema; 2020-12 where the schema names no dialect.

    Args:
        schema: One that `check_schema` found fit.
    """

    __slots__ = ("_validator",)

    def __init__(self, schema: JsonObject) -> None:
        self._validator = _compile(schema)

    def faults(self, value: object, *, most: int | None = None) -> list[Fault]:
        """Say where a JSON value breaks the schema; an empty list when it does not."""
        if self._validator.is_valid(value):  # several times quicker than looking for faults
            return []
        errors = islice(self._validator.iter_errors(value), most)
        return [(path_text(error.instance_path), _shorten(error.message)) for error in errors]


def check_schema(schema: JsonObject) -> None:
    """Refuse what is no JSON Schema, or one that could not be applied to a value.

    Raises:
        ValueError: It says what is wrong and what to write instead.
    """
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise ValueError(
                f"refers to {shorten(reference)!r} outside itself; copy what that says into its $defs"
            )
        if not _is_held(schema, unquote(reference[1:])):
            raise ValueError(
                f"refers to {shorten(reference)!r}, which it does not hold; add it there"
            )
    try:
        _compile(schema)
    except jsonschema_rs.ValidationError as error:
        where = path_text(error.instance_path) or "its root"
        raise ValueError(
            f"is no JSON Schema at {where}: {shorten(error.message)}; correct it there"
        ) from None
    except ValueError:  # the recursion limit
        raise ValueError("is nested too deeply; write its parts into $defs and $ref them") from None


def _shorten(message: str) -> str:
    """Cut what is quoted of a long value, which comes first, and keep the rule, which ends it."""
    return message if len(message) <= 300 else f"{message[:100]} … {message[-199:]}"


def _compile(schema: JsonObject) -> jsonschema_rs.Validator:
    dialect = jsonschema_rs.validator_cls_for(schema)
    # What `format` says is a hint, as the specification has it; nothing is fetched.
    return dialect(schema, validate_formats=False, offline=True)


def _references(schema: JsonObject) -> Iterator[str]:
    for part in _objects(schema):
        for keyword in ("$ref", "$dynamicRef"):
            reference = part.get(keyword)
            if isinstance(reference, str):
                yield reference


def _is_held(schema: JsonObject, fragment: str) -> bool:
    if fragment and not fragment.startswith("/"):
        return any(
            fragment in (o.get("$anchor"), o.get("$dynamicAnchor")) for o in _objects(schema)
        )
    part: JsonValue = schema
    for step in fragment.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isdecimal() and int(key) < len(part):
            part = part[int(key)]
        else:
            return False
    return True


def _objects(value: JsonValue) -> Iterator[JsonObject]:
    """Give every object within a JSON value, however deep."""
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left += part.values()
        elif isinstance(part, list):
            left += part
