"""Create directories that only their owner may use."""

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
