"""Find plugins in directories; every call looks at the disk again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opentabs_py.plugins.files import can_read, is_unreadable
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
        """Return the directories of all existing plugins, and the named ones that do not exist.

        Directories that cannot be read are among them, and folders, too: loading them says why.
        """
        inside = (each for each in self._subfolders() if is_plugin(each) or is_unreadable(each))
        return [*self.directories, *inside]

    def candidates(self) -> list[Path]:
        """Return the directories that contain a plugin, or may contain one later."""
        return [*self.directories, *self._subfolders()]

    def _subfolders(self) -> Iterator[Path]:
        for folder in self.folders:
            if is_unreadable(folder):
                yield folder
                continue
            try:
                inside = sorted(folder.iterdir())
            except OSError:  # it does not exist, or not yet
                continue
            for each in inside:
                if each.name[0] != "." and (can_read(each) or is_unreadable(each)):
                    yield each


def load_configured(settings: "Settings") -> tuple[list[Plugin], list[SkippedPlugin]]:
    """Load the plugins that settings name; return the others with the reason."""
    sources = Sources(settings.plugins, settings.plugin_folders)
    return load_plugins(sources.plugins(), settings.plugin_settings)
