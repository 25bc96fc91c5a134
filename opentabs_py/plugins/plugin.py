"""A loaded plugin; its scripts stay on disk until they are sent."""

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.plugins.stack_traces import SourceMap
from opentabs_py.errors import PluginError
from opentabs_py.plugins.files import Script, Stamp, find_stamp, read_within

_SOURCE_MAP_COMMENT: Final = b"//# sourceMappingURL="


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that can be served.

    Attributes:
        parsed: Its manifest as its files say it.
        manifest: Its manifest as it is served, with the patterns that its settings add.
        adapter: The script that registers it in a page.
        pre_script: The script that runs before a page's own, if it has one.
        config: The values of its settings. Some are secrets.
        source_map: Maps the adapter to its source, if the build wrote one.
        stamps: Those of all its files, by name, which tell whether they have changed since; None
            if they cannot tell.
    """

    directory: Path
    parsed: PluginManifest = field(repr=False)
    manifest: PluginManifest
    adapter: Script
    pre_script: Script | None = None
    config: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue], repr=False)
    source_map: "SourceMapFile | None" = field(default=None, repr=False)
    stamps: Mapping[str, Stamp | None] | None = field(default=None, repr=False, compare=False)

    @property
    def adapter_with_map(self) -> "Script | ScriptWithMap":
        """The adapter with an inline source map, so that DevTools show the source."""
        if self.source_map is None:
            return self.adapter
        return ScriptWithMap(self.adapter, self.source_map)


@dataclass(frozen=True, eq=False)
class SourceMapFile:
    """A source map as it was when its plugin was loaded; its content stays on disk.

    Attributes:
        stamp: Tells whether it has changed. It only makes errors readable, and is twice as large as
            its script, so nothing is gained by hashing it at every start.
    """

    directory: Path
    name: str
    limit: int
    stamp: Stamp

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SourceMapFile) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[Path, str, int, int]:
        return self.directory, self.name, self.stamp.modified, self.stamp.size

    def read(self) -> bytes | None:
        """Return the content; None if it has changed since the plugin was loaded."""
        try:
            content = read_within(self.directory, self.name, limit=self.limit)
        except (FileNotFoundError, PluginError):
            return None
        return content if find_stamp(self.directory, self.name) == self.stamp else None

    @cached_property
    def parsed(self) -> SourceMap | None:
        """The content; None if it has changed since the plugin was loaded, or is not valid.

        Together with the first position that is looked up, this takes 20 ms, for a large plugin
        0.2 s.
        """
        content = self.read()
        try:
            return None if content is None else SourceMap(content)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class ScriptWithMap:
    """A script with an inline source map."""

    script: Script
    source_map: SourceMapFile

    @property
    def digest(self) -> str:
        """Identifies the content."""
        return hashlib.sha256(
            f"{self.script.digest} {self.source_map.stamp.modified}".encode()
        ).hexdigest()

    def parts(self) -> Sequence[bytes]:
        """Return the content in parts, without the map if that has changed.

        Raises:
            PluginError: The script has changed since the plugin was loaded, or cannot be read.
        """
        content, source_map = self.script.read(), self.source_map.read()
        code, comment, _ = content.rpartition(_SOURCE_MAP_COMMENT)
        if source_map is None or not comment:
            return [content]
        inline = b"data:application/json;base64,"
        return [code, comment, inline, base64.b64encode(source_map), b"\n"]


@dataclass(frozen=True, slots=True)
class SkippedPlugin:
    """A plugin, or one of its tools, that cannot be served, and why.

    Attributes:
        plugin: The plugin's name, if known.
    """

    directory: Path
    reason: str
    plugin: str | None = None


def reasons(skipped: Iterable[SkippedPlugin]) -> list[str]:
    """Return why plugins are skipped; a reason that several share comes once."""
    return [*dict.fromkeys(each.reason for each in skipped)]


@dataclass(frozen=True, slots=True)
class PluginChanges:
    """What changed when plugins were read again, by name.

    Attributes:
        skipped: Plugins with a new problem. A plugin that was served before remains in service
            unchanged, as long as its directory exists.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    skipped: tuple[SkippedPlugin, ...] = ()


def compare_plugins(
    old: tuple[Sequence[Plugin], Sequence[SkippedPlugin]],
    new: tuple[Sequence[Plugin], Sequence[SkippedPlugin]],
) -> PluginChanges:
    """Return the differences between two loads."""
    before = {plugin.manifest.name: plugin for plugin in old[0]}
    after = {plugin.manifest.name: plugin for plugin in new[0]}
    return PluginChanges(
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=tuple(name for name in after if name in before and after[name] != before[name]),
        skipped=tuple(each for each in new[1] if each not in old[1]),
    )
