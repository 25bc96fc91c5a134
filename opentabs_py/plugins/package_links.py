"""Links in a plugin's `node_modules` to the builder's SDK and Zod, which it imports."""

from collections.abc import Mapping
from pathlib import Path

from opentabs_py.plugins.toolchain import BUILDER_PREFIX


def link_packages(directory: Path, packages: Mapping[str, Path]) -> None:
    """Link what plugins import to where editors, tsc and Node look for it, if it is missing.

    npm removes the links whenever it installs something; the next build restores them.
    """
    for name, source in packages.items():
        link = directory / "node_modules" / name
        if link.is_symlink() and _is_outdated(link, source):
            link.unlink()
        if link.is_symlink() or link.exists():
            continue
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(source, target_is_directory=True)
        except OSError:
            return  # only editors miss it; some Windows accounts cannot create links


def _is_outdated(link: Path, source: Path) -> bool:
    """Return whether a link is broken, or points to another version's builder."""
    target = link.readlink()
    of_builder = any(part.startswith(BUILDER_PREFIX) for part in target.parts)
    return target != source and (of_builder or not link.exists())
