"""Map the stack traces of plugin tools to the plugin's own source."""

import posixpath
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from opentabs_py.core.plugins.file_names import BUILT_ADAPTER, DIST
from opentabs_py.core.text import shorten

AROUND: Final = 2  # lines of source before and after the one that threw
LONGEST_LINE: Final = 120  # characters shown of a source line
LONGEST_HEAD: Final = 500  # characters of an error's text before its frames
LONGEST_FRAME: Final = 1000  # characters; a page could send one that is slow to match

_CAUSE: Final = "[cause]: "  # begins the text of each cause, as the runtime writes it
# As V8 writes them: `at send (URL:1:2)`, `at async Object.handle (URL:1:2)`, `at URL:1:2`.
_FRAME: Final = re.compile(
    r"^\s+at (?P<name>.*?)\(?(?P<url>[^\s()]+):(?P<line>\d{1,9}):(?P<column>\d{1,9})\)?$"
)
_OURS: Final = re.compile(r"^chrome-extension://[a-p]{32}/(?P<file>.+)$")
_ADAPTERS: Final = "adapters/"
# A position in an adapter, in any text; its file is named after the plugin and its content.
_POSITION: Final = re.compile(
    r"chrome-extension://[a-p]{32}/adapters/(?P<plugin>[a-z0-9-]{1,200})-[0-9a-f]{1,64}\.js"
    r":(?P<line>\d{1,9}):(?P<column>\d{1,9})"
)
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

_LARGEST: Final = 2**31 - 1  # the largest number in a map; it fits in the arrays below


@dataclass(frozen=True, slots=True)
class Origin:
    """The source position that a position in the built script comes from.

    Attributes:
        source: The index of its file.
        line: Starting at 0.
        column: Starting at 0, in UTF-16 code units.
    """

    source: int
    line: int
    column: int


@dataclass(slots=True)
class _Segments:
    """Where the segments of a built line begin, and the source, line and column of each."""

    columns: "array[int]" = field(default_factory=lambda: array("i"))
    origins: "array[int]" = field(default_factory=lambda: array("i"))


class SourceMap:
    """A source map (ECMA-426), without sections.

    Args:
        content: The file's content.

    Raises:
        ValueError: It is not a valid source map.
    """

    def __init__(self, content: bytes) -> None:
        read = _Read.model_validate_json(content)
        self._mappings, self._sources = read.mappings, read.sources
        self._contents = [text or "" for text in read.contents or []]

    def find(self, position: Position) -> Origin | None:
        """Return where a position in the built script comes from.

        The first time, this decodes the map: 10 ms for a small plugin, 0.1 s for a large one.
        """
        line, column = position
        if (segments := self._lines.get(line)) is None:
            return None
        at = bisect_right(segments.columns, column) - 1  # the last one that begins before it
        return None if at < 0 else Origin(*segments.origins[3 * at : 3 * at + 3])

    @cached_property
    def _lines(self) -> Mapping[int, _Segments]:
        lines: dict[int, _Segments] = {}
        source = line = column = 0
        for number, group in enumerate(self._mappings.split(";")):
            if not group:
                continue
            segments = lines[number] = _Segments()
            at = 0
            for segment in group.split(","):
                fields = _decode(segment)
                at += fields[0]
                if len(fields) < 4:
                    continue
                source, line, column = source + fields[1], line + fields[2], column + fields[3]
                if not all(0 <= each <= _LARGEST for each in (at, source, line, column)):
                    return lines  # from here on the map is broken
                segments.columns.append(at)
                segments.origins.extend((source, line, column))
        return lines

    def where(self, origin: Origin) -> str:
        """Return a position in words: `src/send.ts:3:10`.

        Paths are relative to the plugin's directory, or begin with the name of a package.
        """
        source = self._sources[origin.source] if origin.source < len(self._sources) else "unknown"
        if source.startswith("."):
            source = posixpath.normpath(posixpath.join(DIST, source))
        return f"{source}:{origin.line + 1}:{origin.column + 1}"

    def is_own(self, origin: Origin) -> bool:
        """Return whether a source belongs to the plugin rather than to a package."""
        return origin.source < len(self._sources) and self._sources[origin.source].startswith("../")

    def frame(self, origin: Origin) -> list[str]:
        """Return the source lines around a position, with a marker under it; [] if unknown."""
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
    """Return a stack in terms of the author's own files, with the lines that threw.

    Frames of the runtime are left out. Without a source map, frames name the built adapter.

    Args:
        stack: The text V8 wrote in the page, then that of each cause; it cannot be trusted.
        source_map: The adapter's source map.
    """
    shown: list[str] = []
    thrown: list[str] = []
    for head, frames in _errors(stack.splitlines()):
        shown.append(shorten("\n".join(head), LONGEST_HEAD))
        for frame in frames:
            where = f"{frame['url']}:{frame['line']}:{frame['column']}"
            if (ours := _OURS.match(frame["url"])) is not None:
                if not ours["file"].startswith(_ADAPTERS):
                    continue  # the runtime
                where = f"{BUILT_ADAPTER}:{frame['line']}:{frame['column']}"
                origin = source_map.find(_position(frame)) if source_map is not None else None
                if source_map is not None and origin is not None:
                    where = source_map.where(origin)
                    if not thrown and source_map.is_own(origin):
                        thrown = source_map.frame(origin)
            name = frame["name"].strip()
            shown.append(f"    at {name} ({where})" if name else f"    at {where}")
    return "\n".join([*shown, *(["", *thrown] if thrown else [])])


def readable_positions(text: str, find_map: Callable[[str], SourceMap | None]) -> str:
    """Return a text, such as a log, in which positions in adapters are those in the source.

    Args:
        text: The text.
        find_map: Returns the source map of a plugin's adapter, if there is one.
    """

    def where(found: re.Match[str]) -> str:
        source_map = find_map(found["plugin"])
        origin = None if source_map is None else source_map.find(_position(found))
        return found[0] if source_map is None or origin is None else source_map.where(origin)

    return _POSITION.sub(where, text)


def _errors(lines: list[str]) -> list[tuple[list[str], list[re.Match[str]]]]:
    """Return the text and the frames of the error and of each of its causes.

    The text of one is the lines before its first frame; a message may have several.
    """
    errors: list[tuple[list[str], list[re.Match[str]]]] = []
    for line in lines:
        if not errors or line.startswith(_CAUSE):
            errors.append(([], []))
        head, frames = errors[-1]
        if (frame := _frame(line)) is not None:
            frames.append(frame)
        elif not frames:
            head.append(line)
    return errors


def _frame(line: str) -> re.Match[str] | None:
    return _FRAME.match(line) if len(line) <= LONGEST_FRAME else None


def _position(match: re.Match[str]) -> Position:
    return int(match["line"]) - 1, int(match["column"]) - 1


@lru_cache(maxsize=8192)  # most segments repeat earlier ones
def _decode(segment: str) -> tuple[int, ...]:
    """Decode the Base64 VLQ fields of a segment."""
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
