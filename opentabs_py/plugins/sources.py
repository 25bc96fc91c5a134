"""Where plugins are looked for, each time anew."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opentabs_py.plugins.load import is_plugin


@dataclass(frozen=True, slots=True)
class Sources:
    """The directories that plugins are served from.

    Attributes:
        directories: Each is a plugin's.
        folders: Each holds plugins' directories, which may come and go.
        files: Settings files, which say what the others are.
    """

    directories: Sequence[Path] = ()
    folders: Sequence[Path] = ()
    files: Sequence[Path] = ()

    def plugins(self) -> list[Path]:
        """Return the directory of each plugin that is there, and those named that are not."""
        return [*self.directories, *filter(is_plugin, self._subfolders())]

    def candidates(self) -> list[Path]:
        """Return the directories that are plugins' or may become so."""
        return [*self.directories, *self._subfolders()]

    def _subfolders(self) -> Iterator[Path]:
        for folder in self.folders:
            try:
                inside = sorted(folder.iterdir())
            except OSError:  # it is not there, or not yet
                continue
            yield from (each for each in inside if each.is_dir() and each.name[0] != ".")
