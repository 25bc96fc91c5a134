"""Compare JSON values with expected ones, and show where they differ.

Objects may have more members than expected. In the expected value, `...` stands for any value, and
as an item of a list for any number of items.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from opentabs_py.core.text import path_text

SHOWN = 500  # characters of a value shown on one line of an error
BEFORE = 50  # of them before those that differ
SHOWN_LINES = 40  # lines of a difference
_ANY = "\0..."  # a placeholder that no tool returns; shown as ...


def is_within(expected: Any, value: Any) -> bool:
    """Return whether a value has at least the expected members."""
    if expected is ...:
        return True
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        wanted, have = cast(Mapping[str, Any], expected), cast(Mapping[str, Any], value)
        return all(name in have and is_within(wanted[name], have[name]) for name in wanted)
    if isinstance(expected, list | tuple) and isinstance(value, list):
        return _are_within(cast(Sequence[Any], expected), cast(Sequence[Any], value))
    # True equals 1 in Python, but not in JSON.
    return isinstance(expected, bool) == isinstance(value, bool) and bool(expected == value)


def difference(expected: Any, value: Any) -> str:
    """Return where a value first differs from the expected one, and a diff of both."""
    path = _parting(expected, value)
    place = f", from {path_text(path)} on" if path else ""
    return f"{place}\n{_diff(expected, _trimmed(expected, value))}"


def shortened(value: Any) -> str:
    """Return a value as JSON, shortened to fit an error message."""
    text = _json(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"


def _are_within(items: Sequence[Any], there: Sequence[Any]) -> bool:
    first, *others = _split(items)
    if not others:
        return len(first) == len(there) and _fits(first, there, 0)
    *middle, last = others
    end = len(there) - len(last)
    at = len(first)
    if at > end or not (_fits(first, there, 0) and _fits(last, there, end)):
        return False
    for run in middle:  # taking the first place where each fits leaves the most room for the others
        while at + len(run) <= end and not _fits(run, there, at):
            at += 1
        at += len(run)
        if at > end:
            return False
    return True


def _split(items: Sequence[Any]) -> list[list[Any]]:
    """Return the runs of items between those that are `...`."""
    runs: list[list[Any]] = [[]]
    for item in items:
        if item is ...:
            runs.append([])
        else:
            runs[-1].append(item)
    return runs


def _fits(run: Sequence[Any], there: Sequence[Any], at: int) -> bool:
    return len(there) >= at + len(run) and all(map(is_within, run, there[at:]))


def _parting(expected: Any, value: Any) -> tuple[int | str, ...]:
    """Return the path of the first place where a value differs from the expected one."""
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        wanted, have = cast(Mapping[str, Any], expected), cast(Mapping[str, Any], value)
        for name in wanted:
            if name not in have or not is_within(wanted[name], have[name]):
                return (name, *_parting(wanted[name], have.get(name)))
    if isinstance(expected, list | tuple) and isinstance(value, list):
        runs, there = _split(cast(Sequence[Any], expected)), cast(Sequence[Any], value)
        for index, (item, other) in enumerate(zip(runs[0], there, strict=False)):
            if not is_within(item, other):
                return (index, *_parting(item, other))
        if len(runs[0]) > len(there) or len(runs) == 1:
            return (min(len(runs[0]), len(there)),)
    return ()


def _trimmed(expected: Any, value: Any) -> Any:
    """Return a value without the members that have no expected counterpart."""
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        wanted, have = cast(Mapping[str, Any], expected), cast(Mapping[str, Any], value)
        return {name: _trimmed(wanted[name], have[name]) for name in wanted if name in have}
    if isinstance(expected, list | tuple) and isinstance(value, list):
        items, there = cast(Sequence[Any], expected), cast(Sequence[Any], value)
        return there if ... in items else [*map(_trimmed, items, there), *there[len(items) :]]
    return value


def _diff(expected: Any, got: Any) -> str:
    lines = list(
        difflib.unified_diff(_lines(expected), _lines(got), "expected", "got", lineterm="", n=2)
    )
    # Replace hunk headers with an ellipsis: their line numbers mean nothing to a reader.
    parts = [*lines[:2], *("…" if line.startswith("@@") else line for line in lines[3:])]
    left_out = len(parts) - SHOWN_LINES
    if left_out > 0:
        parts[SHOWN_LINES:] = [f"(… {left_out} more lines)"]
    return "\n".join(_cut(line, parts) for line in parts)


def _cut(line: str, parts: Sequence[str]) -> str:
    """Return a line of a diff; of a long one, what follows the beginning that others share."""
    if len(line) <= SHOWN:
        return line
    sign, text = line[0], line[1:]
    others = [each[1:] for each in parts if each[0] in "+-" and each[0] != sign]
    at = max([0, *(_shared(text, other) - BEFORE for other in others)])
    more = "…" if at + SHOWN < len(text) else ""
    return f"{sign}{'…' if at else ''}{text[at : at + SHOWN]}{more}"


def _shared(text: str, other: str) -> int:
    """Return the length of the beginning that two texts share; megabytes take milliseconds."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _lines(value: Any) -> list[str]:
    if isinstance(value, list):
        return list(map(_json, cast(Sequence[Any], value)))
    return _json(value, indent=2).splitlines()


def _json(value: Any, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_other, indent=indent)
    return text.replace(json.dumps(_ANY), "...")


def _other(value: object) -> str:
    return _ANY if value is ... else repr(value)
