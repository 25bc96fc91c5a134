"""Write files so that readers never see half of one."""

import secrets
from collections.abc import Iterable
from pathlib import Path


def write_whole(file: Path, content: bytes | Iterable[bytes], *, mode: int = 0o644) -> None:
    """Write a file atomically, so that readers see either the old or the new content.

    Args:
        file: The file, whose directory exists.
        content: What to write, whole or in parts. If getting a part raises an error, the file stays
            as it was.
        mode: The permissions that it has from the beginning.
    """
    partial = file.with_name(f"{file.name}.{secrets.token_hex(4)}.partial")
    try:
        partial.touch(mode=mode, exist_ok=False)
        with partial.open("wb") as out:
            out.writelines((content,) if isinstance(content, bytes) else content)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
