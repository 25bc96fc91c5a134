"""Read files from a plugin's directory, and from nowhere else.

Plugins are written by others: their directory may contain a link to a private key, a FIFO without
a writer, or an endless device.
"""

import os
import stat
from pathlib import Path

from opentabs_py.errors import PluginError


def read_within(directory: Path, name: str, *, limit: int) -> bytes:
    """Return the content of a regular file in a directory.

    Args:
        directory: Links must not lead outside it; it may be a link itself.
        name: The file's path relative to the directory.
        limit: The largest size allowed, in bytes.

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
        raise PluginError(f"Cannot read {path}: {error.strerror}.") from error
    except RuntimeError:  # from `resolve`, before Python 3.13
        raise PluginError(f"Cannot read {path}: its links form a loop.") from None
    if len(content) > limit:
        raise PluginError(f"{path} is larger than the limit of {limit:,} bytes.")
    return content


def _read(path: Path, root: Path, limit: int) -> bytes:
    """Return a file's content, or one byte more than the limit if it is longer."""
    target = path.resolve()
    if not target.is_relative_to(root):
        raise PluginError(
            f"{path} is a link out of the plugin, to {target}. Replace it with the file itself."
        )
    opened = _open(root, target.relative_to(root))
    with os.fdopen(opened, "rb") as file:
        # Read rather than ask for the size: a file may grow, and some report a size of 0.
        return file.read(limit + 1)


def _open(root: Path, way: Path) -> int:
    """Open a file component by component, without following links created since `resolve`."""
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for step in way.parts:
        above = opened
        try:
            # Non-blocking: opening a FIFO would wait for a writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            opened = os.open(step, flags, dir_fd=above)
        finally:
            os.close(above)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise PluginError(f"{root / way} is not a regular file. Build the plugin again.")
    return opened
