"""JSON values as keys, as Python source, and by size."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_WIDTH: Final = 88  # characters of a line of source
_LONG: Final = 40  # characters or items from which a repetition is written as one


def key_of(value: Any) -> str:
    """Return a string that is equal for JSON values that are equal."""
    return json.dumps(value, sort_keys=True)


def unique_key(value: Any) -> str:
    """Return a string that is equal for values that JSON Schema's `uniqueItems` considers equal."""
    return key_of(_with_plain_numbers(value))


def source(value: Any, indent: int = 0) -> str:
    """Return a JSON value as a Python expression.

    Args:
        value: A JSON value.
        indent: How far the line on which it begins is indented.
    """
    line = _one_line(value)
    if len(line) + indent <= _WIDTH or not isinstance(value, dict | list) or " * " in line:
        return line
    if isinstance(value, dict):
        members = cast(Mapping[str, Any], value).items()
        parts = [f"{quoted(name)}: {source(each, indent + 4)}," for name, each in members]
        opening, closing = "{}"
    else:
        parts = [f"{source(each, indent + 4)}," for each in cast(Sequence[Any], value)]
        opening, closing = "[]"
    inside = textwrap.indent("\n".join(parts), " " * 4)
    return f"{opening}\n{inside}\n{closing}"


def quoted(text: str) -> str:
    """Return a string as Python source, in double quotes where that needs no more escapes."""
    written = repr(text)
    if written.startswith("'") and '"' not in text:
        return f'"{written[1:-1]}"'
    return written


def _one_line(value: Any) -> str:
    match value:
        case str() if len(value) > _LONG and len(set(value)) == 1:
            return f"{quoted(value[0])} * {len(value)}"
        case str():
            return quoted(value)
        case list():
            items = cast(Sequence[Any], value)
            if len(items) > _LONG and len({*map(key_of, items)}) == 1:
                return f"[{_one_line(items[0])}] * {len(items)}"
            return f"[{', '.join(map(_one_line, items))}]"
        case dict():
            members = cast(dict[str, Any], value).items()
            parts = [f"{quoted(name)}: {_one_line(each)}" for name, each in members]
            return f"{{{', '.join(parts)}}}"
        case _:
            return repr(value)


def _with_plain_numbers(value: Any) -> Any:
    """Return a value whose whole numbers are integers: in JSON, 1.0 equals 1."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            items = cast(Sequence[Any], value)
            return list(map(_with_plain_numbers, items))
        case dict():
            members = cast(dict[str, Any], value).items()
            return {name: _with_plain_numbers(each) for name, each in members}
        case _:
            return value
