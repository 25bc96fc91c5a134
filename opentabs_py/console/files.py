"""The page's files, from memory: it asks for all of them at once, and waits for the last."""

import hashlib
import mimetypes
import os
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from opentabs_py.server.http.json_requests import refuse

PAGE: Final = Path(__file__).with_name("page")
_TYPES: Final = {".js": "text/javascript", ".LICENSE": "text/plain"}


@dataclass(frozen=True, slots=True)
class _File:
    modified: int
    content: bytes
    etag: str


class Files:
    """Serves the files of directories, but not of those below them.

    Args:
        directories: The directories; the first that has a file with a name serves it.
    """

    def __init__(self, *directories: Path) -> None:
        self._directories = directories
        self._read: dict[Path, _File] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        name = scope["path"].rpartition("/")[2]
        answer: Response
        if scope["method"] not in ("GET", "HEAD"):
            answer = refuse("Files can only be read.", HTTPStatus.METHOD_NOT_ALLOWED)
        elif (file := self._find(name)) is None:
            answer = refuse(f"There is no file {name!r}.", HTTPStatus.NOT_FOUND)
        elif Headers(scope=scope).get("if-none-match") == file.etag:
            answer = Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"etag": file.etag})
        else:
            suffix = Path(name).suffix
            kind = _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")
            answer = Response(file.content, headers={"etag": file.etag}, media_type=kind)
        await answer(scope, receive, send)

    def _find(self, name: str) -> _File | None:
        found = (self._find_in(directory, name) for directory in self._directories)
        return next((each for each in found if each is not None), None)

    def _find_in(self, directory: Path, name: str) -> _File | None:
        path = directory / name
        if path.parent != directory:  # on Windows, a name with a backslash would lead out of it
            return None
        if not os.path.isfile(path):  # noqa: PTH113 (`Path.is_file` raises for a name too long)
            return None
        modified = path.stat().st_mtime_ns
        known = self._read.get(path)
        if known is None or known.modified != modified:
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
            known = self._read[path] = _File(modified, content, etag)
        return known
