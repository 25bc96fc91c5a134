"""Map the stack traces of plugin tools to the plugin's own source."""

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from opentabs_py.core.plugins.file_names import BUILT_ADAPTER, DIST
from opentabs_py.core.text import shorten

AROUND: Final = 2  # lines of source before and after the one that threw
LONGEST_LINE: Final = 120  # characters shown of a source line
LONGEST_HEAD: Final = 500  # characters of an error's text before its frames
MOST_KNOWN: Final = 1000  # cached positions; a page could invent any number
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
        self._known: dict[Position, Origin | None] = {}

    def find(self, positions: Iterable[Position]) -> dict[Position, Origin]:
        """Return where positions in the built script come from; unknown ones are left out.

        Finding new ones reads the map from its beginning: 0.1 s for a large plugin.
        """
        asked = frozenset(positions)
        if new := asked - self._known.keys():
            if len(self._known) + len(new) > MOST_KNOWN:
                self._known.clear()
            self._known |= dict.fromkeys(new) | self._read(new)
        return {each: origin for each in asked if (origin := self._known.get(each)) is not None}

    def _read(self, positions: Iterable[Position]) -> dict[Position, Origin]:
        wanted: dict[int, list[int]] = {}
        for line, column in positions:
            wanted.setdefault(line, []).append(column)
        found: dict[Position, Origin] = {}
        source = line = column = 0
        last = max(wanted)
        for number, group in enumerate(self._mappings.split(";", last + 1)[: last + 1]):
            columns = wanted.get(number, ())
            at = 0
            for segment in group.split(",") if group else ():
                fields = _decode(segment)
                at += fields[0]
                if len(fields) < 4:
                    continue
                source, line, column = source + fields[1], line + fields[2], column + fields[3]
                if source < 0 or line < 0 or column < 0:
                    return found  # from here on the map is broken
                for each in columns:
                    if at <= each:  # the last one that begins before it
                        found[number, each] = Origin(source, line, column)
        return found

    def name(self, origin: Origin) -> str:
        """Return a source's path relative to the plugin's directory, or within its package."""
        source = self._sources[origin.source] if origin.source < len(self._sources) else "unknown"
        if not source.startswith("."):
            return source
        return posixpath.normpath(posixpath.join(DIST, source))

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
    errors = _errors(stack.splitlines())
    places = {
        frame: place
        for _, frames in errors
        for frame in frames
        if (place := _place(frame)) is not None
    }
    origins = source_map.find(places.values()) if source_map is not None else {}
    shown: list[str] = []
    thrown: list[str] = []
    for head, frames in errors:
        shown.append(shorten("\n".join(head), LONGEST_HEAD))
        for frame in frames:
            ours = _OURS.match(frame["url"])
            if ours is not None and frame not in places:
                continue  # the runtime
            origin = origins.get(places[frame]) if frame in places else None
            where = f"{frame['url']}:{frame['line']}:{frame['column']}"
            if ours is not None:
                where = f"{BUILT_ADAPTER}:{frame['line']}:{frame['column']}"
            if origin is not None and source_map is not None:
                where = f"{source_map.name(origin)}:{origin.line + 1}:{origin.column + 1}"
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
    found = list(_POSITION.finditer(text))
    maps = {plugin: find_map(plugin) for plugin in {each["plugin"] for each in found}}
    known: dict[tuple[str, Position], str] = {}
    for plugin, source_map in maps.items():
        if source_map is not None:
            places = {_position(each) for each in found if each["plugin"] == plugin}
            for place, origin in source_map.find(places).items():
                where = f"{source_map.name(origin)}:{origin.line + 1}:{origin.column + 1}"
                known[plugin, place] = where
    return _POSITION.sub(lambda each: known.get((each["plugin"], _position(each)), each[0]), text)


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


def _place(frame: re.Match[str]) -> Position | None:
    """Return the position of a frame in an adapter."""
    ours = _OURS.match(frame["url"])
    if ours is None or not ours["file"].startswith(_ADAPTERS):
        return None
    return _position(frame)


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
