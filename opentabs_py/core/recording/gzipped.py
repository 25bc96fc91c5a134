"""Bodies that pages themselves compress, or decompress, with gzip."""

import zlib
from contextlib import suppress
from gzip import GzipFile
from io import BytesIO

from opentabs_py.core.recording.exchange import LARGEST_BODY


def unzipped(body: bytes) -> bytes:
    """Return what a body contains in gzip; the body itself if it is not in gzip, or too large."""
    with suppress(OSError, EOFError, zlib.error):
        with GzipFile(fileobj=BytesIO(body)) as file:
            plain = file.read(LARGEST_BODY + 1)
        if plain and len(plain) <= LARGEST_BODY:
            return plain
    return body
