"""The stack traces of page tools, in the lines of the plugin's own source."""

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from opentabs_py.core.text import shorten

AROUND: Final = 2  # lines of source before and after the one that threw
LONGEST_LINE: Final = 120  # characters of one that is shown
LONGEST_HEAD: Final = 500  # characters of a stack's text before its frames

LONGEST_FRAME: Final = 1000  # characters; a page could write one that takes long to match

# As V8 writes them: `at send (URL:1:2)`, `at async Object.handle (URL:1:2)`, `at URL:1:2`.
_FRAME: Final = re.compile(
    r"^\s+at (?P<name>.*?)\(?(?P<url>[^\s()]+):(?P<line>\d{1,9}):(?P<column>\d{1,9})\)?$"
)
_OURS: Final = re.compile(r"^chrome-extension://[a-p]{32}/(?P<file>.+)$")
_ADAPTERS: Final = "adapters/"
_DIGITS: Final = {
    digit: value
    for value, digit in enumerate(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    )
}


class _Read(BaseModel):
    model_config = ConfigDict(strict=True)

    mappings: str
    sources: list[str]
    contents: list[str | None] | None = Field(default=None, alias="sourcesContent")


Position = tuple[int, int]
"""A line and a column, both from 0, as source maps count."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in the source a position of the built script comes from.

    Attributes:
        source: The index of its file.
        line: From 0.
        column: From 0, in UTF-16 code units.
    """

    source: int
    line: int
    column: int


class SourceMap:
    """A source map (ECMA-426), without sections.

    Args:
        content: The file's.

    Raises:
        ValueError: It is not one.
    """

    def __init__(self, content: bytes) -> None:
        read = _Read.model_validate_json(content)
        self._mappings, self._sources = read.mappings, read.sources
        self._contents = [text or "" for text in read.contents or []]

    def find(self, positions: Iterable[Position]) -> dict[Position, Origin]:
        """Return where positions of the built script come from; of some, nothing is known."""
        wanted: dict[int, list[int]] = {}
        for line, column in positions:
            wanted.setdefault(line, []).append(column)
        found: dict[Position, Origin] = {}
        source = line = column = 0
        for number, group in enumerate(self._mappings.split(";", max(wanted, default=0) + 1)):
            if number > max(wanted, default=-1):
                break
            columns = wanted.get(number, ())
            at = 0
            for segment in group.split(",") if group else ():
                fields = _decode(segment)
                at += fields[0]
                if len(fields) < 4:
                    continue
                source, line, column = source + fields[1], line + fields[2], column + fields[3]
                for each in columns:
                    if at <= each:  # the last one that begins before it
                        found[number, each] = Origin(source, line, column)
        return found

    def name(self, origin: Origin) -> str:
        """Return a source's path from the plugin's directory, or within its package."""
        source = self._sources[origin.source] if origin.source < len(self._sources) else "unknown"
        if not source.startswith("."):
            return source
        return posixpath.normpath(posixpath.join("dist", source))

    def is_own(self, origin: Origin) -> bool:
        """Return whether a source is the plugin's own, not a package's."""
        return origin.source < len(self._sources) and self._sources[origin.source].startswith("../")

    def frame(self, origin: Origin) -> list[str]:
        """Return the lines of source around a place, and a mark under it; none if unknown."""
        content = self._contents[origin.source] if origin.source < len(self._contents) else ""
        lines = content.splitlines()
        if origin.line >= len(lines):
            return []
        first, last = max(0, origin.line - AROUND), min(len(lines), origin.line + AROUND + 1)
        width = len(str(last))
        shown: list[str] = []
        for number in range(first, last):
            here = number == origin.line
            text = lines[number].replace("\t", " ")
            shown.append(
                f"{'>' if here else ' '} {number + 1:>{width}} | {shorten(text, LONGEST_LINE)}"
            )
            if here and origin.column < LONGEST_LINE:
                shown.append(f"  {'':{width}} | {'':{origin.column}}^")
        return [line.rstrip() for line in shown]


def readable_stack(stack: str, source_map: SourceMap | None = None) -> str:
    """Return a stack as its author reads it: in their files, with the lines that threw.

    Frames of the runtime are left out. Without a source map, frames name the built adapter.

    Args:
        stack: As V8 wrote it, in the page: nothing in it can be trusted.
        source_map: That of the adapter.
    """
    lines = stack.splitlines()
    frames = [found for line in lines if (found := _frame(line)) is not None]
    head = shorten("\n".join(lines[: _count_head(lines)]), LONGEST_HEAD)
    places = {frame: place for frame in frames if (place := _place(frame)) is not None}
    origins = source_map.find(places.values()) if source_map is not None else {}
    shown: list[str] = []
    thrown: list[str] = []
    for frame in frames:
        ours = _OURS.match(frame["url"])
        if ours is not None and frame not in places:
            continue  # the runtime
        origin = origins.get(places[frame]) if frame in places else None
        where = f"{frame['url']}:{frame['line']}:{frame['column']}"
        if ours is not None:
            where = f"dist/adapter.iife.js:{frame['line']}:{frame['column']}"
        if origin is not None and source_map is not None:
            where = f"{source_map.name(origin)}:{origin.line + 1}:{origin.column + 1}"
            if not thrown and source_map.is_own(origin):
                thrown = source_map.frame(origin)
        name = frame["name"].strip()
        shown.append(f"    at {name} ({where})" if name else f"    at {where}")
    return "\n".join([head, *shown, *(["", *thrown] if thrown else [])])


def _frame(line: str) -> re.Match[str] | None:
    return _FRAME.match(line) if len(line) <= LONGEST_FRAME else None


def _count_head(lines: list[str]) -> int:
    """Return how many lines come before the first frame: a message may have several."""
    return next((at for at, line in enumerate(lines) if _frame(line)), len(lines))


def _place(frame: re.Match[str]) -> Position | None:
    """Return the position of a frame in an adapter."""
    ours = _OURS.match(frame["url"])
    if ours is None or not ours["file"].startswith(_ADAPTERS):
        return None
    return int(frame["line"]) - 1, int(frame["column"]) - 1


@lru_cache(maxsize=8192)  # most segments are as some before
def _decode(segment: str) -> tuple[int, ...]:
    """Return the fields of a segment, in base 64 VLQ."""
    fields: list[int] = []
    value = shift = 0
    for digit in segment:
        bits = _DIGITS.get(digit, 0)
        value |= (bits & 31) << shift
        if bits & 32:
            shift += 5
        else:
            fields.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return tuple(fields) or (0,)
