"""Match removed and added members as renames."""

from collections.abc import Sequence
from dataclasses import dataclass

from opentabs_py.core.shapes.change import Change, below, in_words
from opentabs_py.core.shapes.shape import EMPTY, Shape


@dataclass(frozen=True, slots=True)
class Found:
    """A change, and the member that went or came.

    Attributes:
        change: The change.
        parent: The path of the object that has the member.
        name: The member's name.
        member: Its shape.
        is_certain: Whether this is more than another sample might have shown. If it is not, it
            counts only as part of a move.
    """

    change: Change
    parent: str = ""
    name: str = ""
    member: Shape = EMPTY
    is_certain: bool = True


def paired(found: Sequence[Found]) -> Sequence[Change]:
    """Return the changes, with those that are moves put together."""
    came = [part for each in found if each.change.what == "came" for part in _parts(each)]
    changes: list[Change] = []
    for each in found:
        other = _same_member(each, came) if each.change.what == "went" else None
        if other is not None:
            along = {other.change.path + path for path in _paths(each)}
            came = [part for part in came if part.change.path not in along]
            changes.append(_move(each, other))
        elif each.is_certain and each.change.what != "came":
            changes.append(each.change)
    return [*changes, *_new(came)]


def _parts(came: Found) -> Sequence[Found]:
    """Return a member that is new, and all members within it."""
    parts = [came]
    for each in parts:
        path = each.change.path
        for name, member in each.member.members.items():
            change = Change(below(path, name), "came", now=in_words(member))
            parts.append(Found(change, path, name, member, is_certain=came.is_certain))
    return parts


def _paths(went: Found) -> Sequence[str]:
    """Return the paths of a member, "", and of all members within it, relative to its own."""
    return [part.change.path.removeprefix(went.change.path) for part in _parts(went)]


def _same_member(went: Found, came: Sequence[Found]) -> Found | None:
    alike = [each for each in came if _looks_like(went.member, each.member)]
    by_name = [each for each in alike if each.name == went.name]
    beside = [each for each in alike if each.parent == went.parent]
    sharing = [each for each in beside if _share_values(went.member, each.member)]
    for candidates in (by_name, sharing, beside if went.is_certain else []):
        if len(candidates) == 1:
            return candidates[0]
    return None


def _looks_like(one: Shape, other: Shape) -> bool:
    return (
        {*one.kinds} - {"null"} == {*other.kinds} - {"null"}
        and one.format == other.format
        and {*one.members} == {*other.members}
    )


def _share_values(one: Shape, other: Shape) -> bool:
    return not {*(one.values or ())}.isdisjoint(other.values or ())


def _move(went: Found, came: Found) -> Change:
    old, was = went.change.path, went.change.was
    if went.parent == came.parent:
        return Change(old, "renamed", was, came.name)
    return Change(old, "moved", was, came.change.path)


def _new(came: Sequence[Found]) -> Sequence[Change]:
    """Return what is new; what is within a new object goes without saying.

    An object is not reported if it has no more than the members that have moved into it.
    """
    left = {each.change.path for each in came}
    within = {part.change.path for each in came for part in _parts(each)[1:]}
    return [
        each.change
        for each in came
        if each.is_certain
        and each.change.path not in within
        and any(part.change.path in left for part in _parts(each) if not part.member.members)
    ]
