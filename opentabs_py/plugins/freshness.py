"""Check whether a plugin has source, and whether its build is older."""

import json
import os
from pathlib import Path
from shlex import quote

from opentabs_py.core.plugins.file_names import BUILT_TOOLS, DIST, PACKAGE

ENTRIES = ("src/index.ts", "src/index.tsx", "src/index.js", "src/index.jsx")


def has_source(directory: Path) -> bool:
    """Return whether a directory holds a plugin that can be built."""
    return any((directory / entry).is_file() for entry in ENTRIES)


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
            found.update(json.loads(file.read_bytes())["sources"])
        except (OSError, ValueError, LookupError, TypeError):
            continue  # it is not the builder's
    return frozenset(
        Path(os.path.normpath(dist / name)) for name in found if name.startswith("../")
    )


def source_maps(directory: Path) -> list[Path]:
    """Return the source maps in a plugin's build."""
    return sorted((directory / DIST).glob("*.js.map"))
