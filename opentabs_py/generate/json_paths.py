"""Members of JSON values by their path: a sequence of names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

Path = tuple[str, ...]

_DEEPEST: Final = 5


def at(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path; None if there is none."""
    for name in path:
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def walk(value: Any) -> Iterator[tuple[Path, Any]]:
    """Yield the value and the members of its objects with their paths, the upper ones first."""
    level: list[tuple[Path, Any]] = [((), value)]
    for _ in range(_DEEPEST):
        below: list[tuple[Path, Any]] = []
        for path, each in level:
            yield path, each
            if isinstance(each, dict):
                members = cast("Mapping[str, Any]", each)
                below += [((*path, name), inner) for name, inner in members.items()]
        level = below
    yield from level


def is_list_of_objects(value: Any) -> bool:
    """Return whether a value is an array of objects, and not empty."""
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(each, dict) for each in cast("Sequence[Any]", value))
