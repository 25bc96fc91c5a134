"""Write shapes as Zod schemas."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from opentabs_py.core.shapes.shape import Kind, Shape, merge
from opentabs_py.core.text import shorten
from opentabs_py.generate.inputs import Input
from opentabs_py.generate.names import is_identifier, title, words_of

_DEEPEST: Final = 8
_ALIKE: Final = 4  # objects of the same members are entries of a map, rather than parts of one
# The last words of names whose numbers are never fractions.
_WHOLE: Final = {"id", "count", "index", "number", "page", "pages", "limit", "offset", "year"}
# Line separators, which editors take for ends of lines, and the marks of `typed`.
_ESCAPED: Final = {ord(each): f"\\u{ord(each):04x}" for each in "\u0085\u2028\u2029⟦⟧"}
_ORDER: Final[Sequence[Kind]] = ("string", "number", "boolean", "array", "object")


def literal(value: Any) -> str:
    """Return a JSON value as JavaScript."""
    if isinstance(value, dict):
        given = cast("Mapping[str, Any]", value)
        members = ", ".join(f"{member(name)}: {literal(each)}" for name, each in given.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, cast('Sequence[Any]', value)))}]"
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)


def member(name: str) -> str:
    """Return the name of a member, in quotes if it needs them."""
    if name == "__proto__":  # otherwise it would set the prototype
        return '["__proto__"]'
    return name if is_identifier(name) else literal(name)


def schema(shape: Shape, *, name: str = "", indent: int = 0, depth: int = 0) -> str:
    """Return the Zod schema of a shape.

    Args:
        shape: The shape.
        name: The name of the member that it is of.
        indent: How many columns the line begins with.
        depth: How many levels are above it.
    """
    kinds: list[Kind] = [kind for kind in _ORDER if kind in shape.kinds]
    if not kinds or depth > _DEEPEST:
        return "z.unknown()"
    texts = [_kind(kind, shape, name, indent, depth) for kind in kinds]
    text = texts[0] if len(texts) == 1 else f"z.union([{', '.join(texts)}])"
    return f"{text}.nullable()" if shape.is_nullable else text


def argument(given: Input, indent: int) -> str:
    """Return the Zod schema of an argument of a tool."""
    if given.choices:
        text = f"z.enum({literal([*given.choices])})"
        text = f"z.array({text})" if "array" in given.shape.kinds else text
    elif given.shape.is_known:
        text = schema(given.shape, name=given.name, indent=indent)
    else:
        text = "z.unknown()"
    if given.default:
        text += f".default({literal(given.default[0])})"
    elif not given.is_required:
        text += ".optional()"
    return f"{text}.describe({literal(_description(given))})"


def _description(given: Input) -> str:
    words = given.label or title(given.name)
    if given.source is not None:
        return f"{words}; {given.source.path} of {_asked(given)}"
    return words


def _asked(given: Input) -> str:
    assert given.source is not None
    sample = given.source.sample
    return shorten(
        f"{sample.request.method} /{'/'.join(sample.path)} {sample.operation}".strip(), 80
    )


def _kind(kind: Kind, shape: Shape, name: str, indent: int, depth: int) -> str:
    match kind:
        case "string":
            if (choices := shape.fixed_set(name)) is not None and len(shape.kinds) == 1:
                return f"z.enum({literal([*choices])})"
            if shape.format is not None:
                return f"z.string().meta({{ format: {literal(shape.format)} }})"
            return "z.string()"
        case "number":
            return "z.int()" if not shape.unsafe and _is_whole(name) else "z.number()"
        case "boolean":
            return "z.boolean()"
        case "array":
            if shape.items is None:
                return "z.array(z.unknown())"
            return f"z.array({schema(shape.items, name=name, indent=indent, depth=depth + 1)})"
        case _:
            return _object(shape, indent, depth)


def _is_whole(name: str) -> bool:
    words = words_of(name)
    return not _WHOLE.isdisjoint(words[-1:]) or words[-2:] == ["page", "size"]


def _object(shape: Shape, indent: int, depth: int) -> str:
    if (entries := _entries(shape)) is not None:
        return f"z.record(z.string(), {schema(entries, indent=indent, depth=depth + 1)})"
    if not shape.members:
        return "z.looseObject({})"
    inner = " " * (indent + 2)
    lines = [
        f"{inner}{member(name)}: "
        f"{schema(each, name=name, indent=indent + 2, depth=depth + 1)}"
        f"{'' if shape.is_required(name) else '.optional()'},"
        for name, each in shape.members.items()
    ]
    return "\n".join(["z.looseObject({", *lines, f"{' ' * indent}}})"])


def _entries(shape: Shape) -> Shape | None:
    """Return the shape of what an object has by keys, such as users by name, or None.

    Keys that do not look like ids are known by the alike objects that they lead to.
    """
    if shape.entries is not None and not shape.members:
        return shape.entries
    values = [*shape.members.values(), *([] if shape.entries is None else [shape.entries])]
    are_objects = all([*each.kinds] == ["object"] for each in values)
    names = {frozenset(each.members) for each in values}
    is_map = len(values) >= _ALIKE and are_objects and len(names) == 1 and frozenset() not in names
    return merge(*values) if is_map else None
