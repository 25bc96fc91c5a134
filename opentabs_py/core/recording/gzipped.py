"""Bodies that pages themselves compress, or decompress, with gzip."""

import zlib
from contextlib import suppress
from gzip import GzipFile
from io import BytesIO
from typing import Final

LARGEST: Final = 64 * 1024 * 1024  # bytes; as of bodies that are recorded


def unzipped(body: bytes) -> bytes:
    """Return what a body contains in gzip; the body itself if it is not in gzip, or too large."""
    with suppress(OSError, EOFError, zlib.error):
        with GzipFile(fileobj=BytesIO(body)) as file:
            plain = file.read(LARGEST + 1)
        if plain and len(plain) <= LARGEST:
            return plain
    return body
