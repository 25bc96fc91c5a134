"""Write files so that readers never see half of one."""

import secrets
from pathlib import Path


def write_whole(file: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Write a file atomically, so that readers see either the old or the new content.

    Args:
        file: The file, whose directory exists.
        content: What to write.
        mode: The permissions that it has from the beginning.
    """
    partial = file.with_name(f"{file.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.touch(mode=mode, exist_ok=False)
        partial.write_bytes(content)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
