"""The links in a plugin's `node_modules` to what it imports: the SDK and Zod of the builder."""

from collections.abc import Mapping
from pathlib import Path

from opentabs_py.plugins.toolchain import BUILDER_PREFIX


def link_packages(directory: Path, packages: Mapping[str, Path]) -> None:
    """Put what plugins import where editors, tsc and Node look for it, if it is not there.

    npm removes them whenever it installs something; the next build puts them back.
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
            return  # only editors miss it; some Windows accounts may not make links


def _is_outdated(link: Path, source: Path) -> bool:
    """Tell whether a link leads nowhere, or to the builder of another version."""
    target = link.readlink()
    of_builder = any(part.startswith(BUILDER_PREFIX) for part in target.parts)
    return target != source and (of_builder or not link.exists())
