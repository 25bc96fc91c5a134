"""Compare a shape with an earlier one.

Samples are few, and values vary by themselves. So nothing is reported that another sample of the
same site might well have shown: an array without items says nothing about its items, and a member
that some objects lack counts only if more of them lack it than the earlier samples leave room for.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from opentabs_py.core.shapes.change import Change, What, below, in_words
from opentabs_py.core.shapes.pairs import Found, paired
from opentabs_py.core.shapes.shape import LONGEST_VALUE, Kind, Shape, kind_of
from opentabs_py.core.shapes.texts import format_of, is_id, is_number

_ROOM: Final = 6.0  # what never was in n samples has, very likely, a share below 3 / n; twice that
_LISTED: Final = 4  # new values that are listed


def changes(was: Shape, now: Shape) -> Sequence[Change]:
    """Return how values have changed, in the order of their paths.

    Args:
        was: The shape of the earlier samples.
        now: The shape of the later ones.
    """
    found: list[Found] = []
    _compare("", was, now, found)
    return sorted(paired(found), key=lambda change: (change.path, change.what))


def changed_values(
    samples: Sequence[Any], now: Any, replaced: Collection[str] = ()
) -> Sequence[Change]:
    """Return which values have changed that were the same in all earlier samples.

    Numbers, dates and ids are expected to change, and so is what lists contain.

    Args:
        samples: Earlier values of the same; with fewer than two, nothing is known to be stable.
        now: The later one.
        replaced: What the earlier values have in place of secrets.
    """
    if len(samples) < 2:
        return []
    first, *others = [dict(_stable(each)) for each in samples]
    later = dict(_stable(now))
    return [
        Change(path, "value", _quoted(value), _quoted(later[path]))
        for path, value in first.items()
        if all(each.get(path) == value for each in others)
        and path in later
        and later[path] != value
        and not any(isinstance(value, str) and each in value for each in replaced)
    ]


def _compare(path: str, was: Shape, now: Shape, found: list[Found]) -> None:
    if not was.is_known or not now.kinds:
        return
    note = _Notes(path, found)
    new: list[Kind] = [kind for kind in now.kinds if kind != "null" and kind not in was.kinds]
    if new or not (now.is_known or was.is_nullable):
        note("type", in_words(was), in_words(now))
        return
    if now.is_nullable and not was.is_nullable and _is_more(now.kinds["null"], now, was):
        note("null", in_words(was))
    if (lost := was.format) is not None and "string" in now.kinds and not now.formats:
        note("format", lost)
    name = path.rpartition(".")[2].removesuffix("[]")
    if (choices := was.fixed_set(name)) is not None and now.values is not None:
        grown = sorted(str(each) for each in now.values if each not in choices)
        if grown:
            note("choice", _listed(choices), _listed(grown))
    if "array" in now.kinds and now.empty == now.kinds["array"] and was.items and not was.empty:
        note("empty")
    _compare_members(path, was, now, found)
    if was.items is not None and now.items is not None:
        _compare(f"{path}[]", was.items, now.items, found)
    if was.entries is not None and now.entries is not None:
        _compare(f"{path}.*" if path else "*", was.entries, now.entries, found)


def _compare_members(path: str, was: Shape, now: Shape, found: list[Found]) -> None:
    if "object" not in now.kinds:
        return
    for name, member in was.members.items():
        there = below(path, name)
        later = now.members.get(name)
        if later is None:
            change = Change(there, "went", in_words(member))
            found.append(Found(change, path, name, member, is_certain=was.is_required(name)))
            continue
        missing = now.kinds["object"] - later.count
        if was.is_required(name) and _is_more(missing, now, was):
            found.append(Found(Change(there, "optional")))
        _compare(there, member, later, found)
    for name, member in now.members.items():
        if name not in was.members:
            change = Change(below(path, name), "came", now=in_words(member))
            is_certain = _is_more(member.count, now, was)
            found.append(Found(change, path, name, member, is_certain=is_certain))


def _is_more(count: int, now: Shape, was: Shape) -> bool:
    """Return whether something is there more often than its absence before leaves room for."""
    return count / now.count > _ROOM / was.count


class _Notes:
    """Notes changes of one place."""

    def __init__(self, path: str, found: list[Found]) -> None:
        self._path = path
        self._found = found

    def __call__(self, what: What, was: str = "", now: str = "") -> None:
        self._found.append(Found(Change(self._path, what, was, now)))


def _stable(value: Any) -> Iterator[tuple[str, str | bool]]:
    """Yield the paths and values of what may well stay the same."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, each = pending.pop()
        match kind_of(each):
            case "object":
                members = cast("Mapping[str, Any]", each)
                pending += [(below(path, name), member) for name, member in members.items()]
            case "boolean":
                yield path, each
            case "string":
                if not (
                    len(each) > LONGEST_VALUE
                    or is_id(each)
                    or is_number(each)
                    or format_of(each) is not None
                ):
                    yield path, each
            case _:
                pass


def _quoted(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def _listed(values: Sequence[str]) -> str:
    more = f", … ({len(values)} in all)" if len(values) > _LISTED else ""
    return ", ".join(f'"{each}"' for each in values[:_LISTED]) + more
