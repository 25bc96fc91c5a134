"""Reading files out of a plugin's folder, and nothing else than those.

A plugin is other people's: what its folder holds may be a link to a private key, a FIFO that
nobody writes to, or a device without an end.
"""

import os
import stat
from pathlib import Path

from opentabs_py.errors import PluginError


def read_within(directory: Path, name: str, *, limit: int) -> bytes:
    """Return the content of a regular file in a directory, which may be a link itself.

    Args:
        directory: Where links may lead.
        name: The file's path in it.
        limit: The most bytes it may have.

    Raises:
        FileNotFoundError: There is no such file.
        PluginError: It cannot be read; the text says why.
    """
    path = directory / name
    try:
        content = _read(path, directory.resolve(), limit)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror}.") from error
    except RuntimeError:  # of `resolve`, before Python 3.13
        raise PluginError(f"{path} cannot be read: its links lead in a circle.") from None
    if len(content) > limit:
        raise PluginError(f"{path} is longer than {limit:,} bytes, which is the limit.")
    return content


def _read(path: Path, root: Path, limit: int) -> bytes:
    """Return a file's content, with one byte more than the limit if it is longer."""
    target = path.resolve()
    if not target.is_relative_to(root):
        raise PluginError(
            f"{path} leads out of the plugin, to {target}. Put the file itself there."
        )
    opened = _open(root, target.relative_to(root))
    with os.fdopen(opened, "rb") as file:
        # Read and not asked for: a file may grow, and some say that they are empty.
        return file.read(limit + 1)


def _open(root: Path, way: Path) -> int:
    """Open a file step by step, following no link that was put there since it was resolved."""
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for step in way.parts:
        above = opened
        try:
            # Non-blocking: opening a FIFO would wait for who writes to it.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            opened = os.open(step, flags, dir_fd=above)
        finally:
            os.close(above)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise PluginError(f"{root / way} is not a regular file. Build the plugin again.")
    return opened
