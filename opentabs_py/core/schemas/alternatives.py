"""Explain why a value matches none of several alternatives in a schema."""

import json
from collections import Counter
from typing import Final

from jsonschema_rs import ValidationError, ValidationErrorKind

from opentabs_py.core.schemas.broken_rules import broken_rule
from opentabs_py.core.schemas.cost import JsonObject

Path = tuple[int | str, ...]
Fault = tuple[Path, str]
"""The path of an invalid part of a value, and the rule that it breaks."""

_Branch = list[ValidationError]  # how a value breaks one alternative

_ARTICLES: Final = {"array": "an ", "integer": "an ", "object": "an ", "null": ""}
_MOST_EXPLAINED: Final = 20  # errors of one alternative; a violation shows a few of them
_MOST_NAMES: Final = 20  # of what was expected


def explain(error: ValidationError, schema: JsonObject) -> list[Fault]:
    """Return what is wrong with a value.

    An agent learns little from "matches none of the alternatives". A value is meant for an
    alternative if it has its type, and the literal that distinguishes it from the others, as `kind`
    does in `{"kind": "title", "text": ""}`. If it is meant for one, the result is what is wrong
    there; if for several, what all of them reject; if for none, what was expected.

    Args:
        error: What the validator says.
        schema: The whole schema.
    """
    here = _path(error)
    match error.kind:
        case ValidationErrorKind.AnyOf(branches) | ValidationErrorKind.OneOfNotValid(branches):
            possible = [branch for branch in branches if not _is_forbidden(branch, here)]
        case _:
            return [(here, broken_rule(error, schema))]
    if not possible:
        return [(here, error.message)]
    meant = [branch for branch in possible if not _expected(branch, here)]
    if not meant:
        return [_was_expected(possible, here)]
    if tag := _tag(meant, here):
        tagged, meant = meant, [branch for branch in meant if not _expected(branch, tag)]
        if not meant:
            return [_was_expected(tagged, tag)]
    explained = [
        [fault for part in branch[:_MOST_EXPLAINED] for fault in explain(part, schema)]
        for branch in meant
    ]
    others = [{*faults} for faults in explained[1:]]
    shared = [fault for fault in explained[0] if all(fault in other for other in others)]
    return shared or [(here, error.message)]


def _path(error: ValidationError) -> Path:
    return (*error.instance_path,)


def _tag(branches: list[_Branch], here: Path) -> Path | None:
    """Return the path of the member whose literal tells the alternatives apart, if there is one."""
    tags = Counter(
        path
        for branch in branches
        for error in branch
        if (path := _path(error)) and path[:-1] == here and _literals(error)
    )
    for tag, _ in tags.most_common(1):
        if not any(_is_forbidden(branch, tag) for branch in branches):
            return tag
    return None


def _is_forbidden(branch: _Branch, path: Path) -> bool:
    """Return whether an alternative allows no value at a path."""
    return any(_forbids(error, path) for error in branch)


def _forbids(error: ValidationError, path: Path) -> bool:
    match error.kind:
        case ValidationErrorKind.FalseSchema():
            return _path(error) == path
        case ValidationErrorKind.AdditionalProperties(names):
            return bool(path) and path[:-1] == _path(error) and path[-1] in names
        case _:
            return False


def _expected(branch: _Branch, path: Path) -> list[str]:
    """Return what an alternative expects at a path instead: literals, or else types."""
    errors = [error for error in branch if _path(error) == path]
    literals = [literal for error in errors for literal in _literals(error)]
    return literals or [name for error in errors for name in _types(error)]


def _literals(error: ValidationError) -> list[str]:
    match error.kind:
        case ValidationErrorKind.Constant(value):
            values = [value]
        case ValidationErrorKind.Enum(options):
            values = options
        case _:
            values = []
    return [json.dumps(value, ensure_ascii=False) for value in values]


def _types(error: ValidationError) -> list[str]:
    match error.kind:
        case ValidationErrorKind.Type(types):
            return [_ARTICLES.get(name, "a ") + name for name in types]
        case _:
            return []


def _was_expected(branches: list[_Branch], path: Path) -> Fault:
    names = dict.fromkeys(name for branch in branches for name in _expected(branch, path))
    *others, last = [*names][:_MOST_NAMES] + ["…"] * (len(names) > _MOST_NAMES)
    return path, f"{', '.join(others)} or {last} was expected" if others else f"{last} was expected"
