"""What `pathlib` leaves out: directories for their owner only, and whether a path exists."""

from pathlib import Path


def create_private(directory: Path) -> None:
    """Create a directory with its missing parents, each for its owner only.

    `Path.mkdir` gives `mode` to the last one only: with a umask of 0, anyone could replace what is
    in the others.

    Raises:
        OSError: It cannot be created.
    """
    for each in (*reversed(directory.parents), directory):
        each.mkdir(mode=0o700, exist_ok=True)


def exists(path: Path) -> bool:
    """Return whether there is a file or directory; since Python 3.14, `Path.exists` hides errors.

    Raises:
        OSError: That cannot be said, because a directory of its path may not be searched.
    """
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
