"""JSON Schemas of tools: what is wrong with one, and which dialect checks values."""

from collections.abc import Iterator
from urllib.parse import unquote

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for
from pydantic import JsonValue

from opentabs_py.core.text import path_text, shorten

JsonObject = dict[str, JsonValue]


def check_schema(schema: JsonObject) -> None:
    """Refuse what is no JSON Schema, or one that could not be applied to a value.

    Raises:
        ValueError: It says what is wrong and what to write instead.
    """
    try:
        validator_of(schema).check_schema(schema)
    except SchemaError as error:
        where = path_text(error.absolute_path) or "its root"
        raise ValueError(
            f"is no JSON Schema at {where}: {shorten(error.message)}; correct it there"
        ) from None
    except RecursionError:
        raise ValueError("is nested too deeply; write its parts into $defs and $ref them") from None
    for reference in _references(schema):
        # The validator would fetch a remote one while a call waits, and fail on a missing one.
        if not reference.startswith("#"):
            raise ValueError(
                f"refers to {reference!r} outside itself; copy what that says into its $defs"
            )
        if not _is_held(schema, unquote(reference[1:])):
            raise ValueError(f"refers to {reference!r}, which it does not hold; add it there")


def validator_of(schema: JsonObject) -> type[Validator]:
    """Give the validator of a schema's dialect."""
    dialect = schema.get("$schema")
    if not isinstance(dialect, str):
        return Draft202012Validator  # the default of MCP; its meta-schema refuses what is no text
    return validator_for(schema, default=Draft202012Validator)


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
