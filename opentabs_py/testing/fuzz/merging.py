"""Merge the parts of a JSON Schema that apply to the same value into one object.

The result only guides what is drawn: it may be wider than the parts together, because every drawn
value is validated against the whole schema afterwards.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from opentabs_py.testing.fuzz.values import key_of

Schema = dict[str, Any]

# Of these a value has at most one; the other schema's comes once ours is resolved.
_LATER: Final = {"anyOf": (), "oneOf": (), "allOf": (), "if": ("then", "else")}
_LARGEST: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_SMALLEST: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_BOTH_HOLD: Final = ("items", "additionalProperties", "propertyNames", "contains")
# Say what else an object must have, or be, that has a member; the last is of older drafts.
DEPENDENTS: Final = ("dependentSchemas", "dependentRequired", "dependencies")
_BY_NAME: Final = ("properties", "patternProperties", *DEPENDENTS)
ALL_TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
# A schema without a type that uses one of these is most likely meant for that type.
_HINTS: Final = {
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "object": ("properties", "required", "additionalProperties", "patternProperties"),
}


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the types that a schema allows, or those that its keywords are about."""
    given = schema.get("type")
    if isinstance(given, str):
        return (given,)
    if given is not None:
        return tuple(given)
    meant = tuple(kind for kind, words in _HINTS.items() if any(word in schema for word in words))
    return meant or ALL_TYPES


def dependents_of(schema: Schema) -> Mapping[str, list[Any]]:
    """Return the schemas of an object that has a member, by the member's name."""
    found: dict[str, list[Any]] = {}
    for keyword in DEPENDENTS:
        by_name: Mapping[str, Any] = schema.get(keyword, {})
        for name, each in by_name.items():
            names = isinstance(each, list)
            found.setdefault(name, []).append({"required": each} if names else each)
    return found


def flatten(
    schema: Schema, follow: Callable[[str], Any], seen: frozenset[str] = frozenset()
) -> Schema | None:
    """Return a schema with its `$ref` and `allOf` merged into it; None if nothing matches it.

    Args:
        schema: A schema that is not a boolean.
        follow: Returns the schema that a reference names.
        seen: The references that led here.
    """
    plain = {name: each for name, each in schema.items() if name not in ("$ref", "allOf")}
    parts: list[Any] = list(schema.get("allOf", ()))
    for keyword in ("$ref", "$dynamicRef"):
        reference = schema.get(keyword)
        if isinstance(reference, str) and reference not in seen:
            parts.append(follow(reference))
            seen |= {reference}
            plain.pop(keyword, None)
    left: list[Any] = []
    for part in parts:
        if part is False:
            return None
        if part is True:
            continue
        flat = flatten(part, follow, seen)
        merged = None if flat is None else merge(plain, flat)
        if merged is None:
            return None
        plain, rest = merged
        left += [rest] if rest else []
    return {**plain, "allOf": left} if left else plain


def merge(one: Schema, other: Schema) -> tuple[Schema, Schema] | None:
    """Merge two schemas; None if no value can match both.

    Returns:
        The merged schema, and what of the other schema has to be merged later.
    """
    merged, later = dict(one), Schema()
    for keyword, theirs in other.items():
        if keyword not in merged:
            merged[keyword] = theirs
        elif keyword in _LATER:
            later |= {name: other[name] for name in (keyword, *_LATER[keyword]) if name in other}
        elif keyword in _MERGED:
            merged[keyword] = _MERGED[keyword](merged[keyword], theirs)
        # Of two formats and the like, the first guides what is drawn.
    return None if merged.get("type") == [] else (merged, later)


def without(schema: Schema, *keywords: str) -> Schema:
    """Return a schema without some keywords."""
    return {name: each for name, each in schema.items() if name not in keywords}


def _both_required(ours: list[str], theirs: list[str]) -> list[str]:
    return list(dict.fromkeys([*ours, *theirs]))


def _both_hold(ours: Any, theirs: Any) -> Schema:
    return {"allOf": [ours, theirs]}


def _in_both(ours: list[Any], theirs: list[Any]) -> list[Any]:
    keys = set(map(key_of, theirs))
    return [each for each in ours if key_of(each) in keys]


def _patterns(ours: str | list[str], theirs: str | list[str]) -> list[str]:
    return [each for some in (ours, theirs) for each in ([some] if isinstance(some, str) else some)]


def _both_by_name(ours: Schema, theirs: Schema) -> Schema:
    return {
        name: (
            {"allOf": [ours[name], theirs[name]]}
            if name in ours and name in theirs and not isinstance(ours[name], list)
            else ours.get(name, theirs.get(name))
        )
        for name in dict.fromkeys([*ours, *theirs])
    }


def _common_types(ours: str | list[str], theirs: str | list[str]) -> list[str]:
    one, other = types_of({"type": ours}), types_of({"type": theirs})
    common = [kind for kind in one if kind in other]
    if "number" not in common and {"number", "integer"} <= {*one, *other}:
        common.append("integer")
    return list(dict.fromkeys(common))


_MERGED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(_LARGEST, max),
    **dict.fromkeys(_SMALLEST, min),
    **dict.fromkeys(_BY_NAME, _both_by_name),
    **dict.fromkeys(_BOTH_HOLD, _both_hold),
    "enum": _in_both,
    "pattern": _patterns,
    "required": _both_required,
    "type": _common_types,
    "uniqueItems": lambda ours, theirs: ours or theirs,
}
