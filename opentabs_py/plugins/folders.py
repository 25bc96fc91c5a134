"""Find plugins in directories; every call looks at the disk again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opentabs_py.plugins.load import is_plugin, load_plugins
from opentabs_py.plugins.plugin import Plugin, SkippedPlugin

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings


@dataclass(frozen=True, slots=True)
class Sources:
    """The directories that plugins are served from.

    Attributes:
        directories: Each contains one plugin.
        folders: Each contains plugin directories, which may come and go.
        files: Settings files, which name the directories and folders.
    """

    directories: Sequence[Path] = ()
    folders: Sequence[Path] = ()
    files: Sequence[Path] = ()

    def plugins(self) -> list[Path]:
        """Return the directories of all existing plugins, and the named ones that do not exist."""
        return [*self.directories, *filter(is_plugin, self._subfolders())]

    def candidates(self) -> list[Path]:
        """Return the directories that contain a plugin, or may contain one later."""
        return [*self.directories, *self._subfolders()]

    def _subfolders(self) -> Iterator[Path]:
        for folder in self.folders:
            try:
                inside = sorted(folder.iterdir())
            except OSError:  # it does not exist, or not yet
                continue
            yield from (each for each in inside if each.is_dir() and each.name[0] != ".")


def load_configured(settings: "Settings") -> tuple[list[Plugin], list[SkippedPlugin]]:
    """Load the plugins that settings name; return the others with the reason."""
    sources = Sources(settings.plugins, settings.plugin_folders)
    return load_plugins(sources.plugins(), settings.settings)
