"""Describe the rule of a schema that a value breaks."""

from collections.abc import Sequence
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, ValidationError, ValidationErrorKind

from opentabs_py.core.schemas.cost import JsonObject, follow

_READABLE: Final = 60  # characters of a pattern
# The formats of JSON Schema for which Zod has a pattern, which may allow less than the format.
_STANDARD: Final = frozenset(
    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)


def broken_rule(error: ValidationError, schema: JsonObject) -> str:
    """Return what the validator says, but with the name of a format in place of its long pattern.

    Args:
        error: What is wrong with a value.
        schema: The whole schema.
    """
    kind = error.kind
    if isinstance(kind, ValidationErrorKind.Pattern) and len(kind.pattern) > _READABLE:
        name = _format_at(error.schema_path, schema)
        if name is not None and not _is_of_format(error.instance, name):
            quoted = f' does not match "{kind.pattern}"'
            return error.message.removesuffix(quoted) + f' is not a valid "{name}"'
    return error.message


def _format_at(path: Sequence[str | int], schema: JsonObject) -> str | None:
    """Return the `format` beside the keyword at a path."""
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path[:-1])
    _, part = follow(schema, "".join(f"/{step}" for step in steps))
    name = part.get("format") if isinstance(part, dict) else None
    return name if isinstance(name, str) else None


def _is_of_format(value: Any, name: str) -> bool:
    """Return whether a value has a format, so that it is its pattern which allows less."""
    if name not in _STANDARD:
        return False
    return Draft202012Validator({"format": name}, validate_formats=True).is_valid(value)
