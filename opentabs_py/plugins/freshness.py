"""Check whether a plugin has source, and whether its build is older."""

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Final

from opentabs_py.core.plugins.file_names import BUILT_TOOLS, DIST, PACKAGE
from opentabs_py.directories import exists

ENTRIES = ("src/index.ts", "src/index.tsx", "src/index.js", "src/index.jsx")
_SOURCES: Final = re.compile(r'"sources"\s*:\s*(?=\[)')
_HEAD: Final = 16 * 1024  # characters of a source map that are read at a time


def has_source(directory: Path) -> bool:
    """Return whether a directory holds a plugin that can be built."""
    return any(exists(directory / entry) for entry in ENTRIES)


def why_stale(directory: Path, name: str) -> str | None:
    """Return a warning if a plugin has to be built again; None if not.

    Args:
        directory: The plugin's directory.
        name: What users call it.
    """
    if not is_stale(directory):
        return None
    is_built = (directory / BUILT_TOOLS).is_file()
    what = "has changed since it was built" if is_built else "has not been built"
    return f"{name} {what}: run `opentabs build {quote(str(directory))}`."


def is_stale(directory: Path) -> bool:
    """Return whether a plugin's source is newer than its build, or was never built."""
    try:
        if not has_source(directory):
            return False
        if not (directory / BUILT_TOOLS).is_file():
            return True
        sources = {directory / PACKAGE, *(directory / "src").rglob("*"), *build_inputs(directory)}
        # A build that changes nothing writes no file; it sets the directory's time.
        dist = directory / DIST
        latest = max(path.stat().st_mtime for path in (dist, *dist.iterdir()))
        return any(source.stat().st_mtime > latest for source in sources if source.is_file())
    except OSError:  # it is being built, or may not be opened
        return False


def build_inputs(directory: Path) -> frozenset[Path]:
    """Return the plugin's own files that its build was made of, as its source maps list them.

    They may be anywhere: a module may import others from outside the plugin's directory. What comes
    from packages is left out.
    """
    dist = (directory / DIST).resolve()
    found: set[str] = set()
    for file in source_maps(directory):
        try:
            found.update(_read_sources(file))
        except (OSError, ValueError):
            continue  # it is not the builder's
    return frozenset(
        Path(os.path.normpath(dist / name)) for name in found if name.startswith("../")
    )


def _read_sources(file: Path) -> list[str]:
    """Return the names of the sources in a source map, without reading their text, which follows.

    Raises:
        ValueError: It has none.
    """
    head = ""
    with file.open(encoding="utf-8") as text:
        while part := text.read(_HEAD):
            head += part
            if found := _SOURCES.search(head):
                with suppress(ValueError):  # the list has not ended yet
                    names = json.JSONDecoder().raw_decode(head, found.end())[0]
                    return [name for name in names if isinstance(name, str)]
    raise ValueError(f"{file} has no sources")


def source_maps(directory: Path) -> list[Path]:
    """Return the source maps in a plugin's build."""
    return sorted((directory / DIST).glob("*.js.map"))
