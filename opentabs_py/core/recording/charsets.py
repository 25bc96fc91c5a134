"""The charset of recorded text."""

import re
from dataclasses import replace
from typing import Final

from opentabs_py.core.recording.exchange import Response, is_json, is_text, is_utf8

_CHARSET: Final = re.compile(r';\s*charset\s*=\s*"?([^\s;"]*)"?', re.IGNORECASE)
_UTF_8: Final = "; charset=utf-8"


def in_utf8(response: Response) -> Response:
    """Return a response whose Content-Type says that its text is in UTF-8.

    Chromium reports text decoded, and recordings contain it in UTF-8, but the headers are still
    those that came.
    """
    body = response.body or b""
    if not (is_text(response.mime) and is_utf8(body)):
        return response
    is_utf8_anyway = body.isascii() or is_json(response.mime)

    def stated(value: str) -> str:
        found = _CHARSET.search(value)
        if found is None:
            return value if is_utf8_anyway else value + _UTF_8
        if found[1].lower() == "utf-8":
            return value
        return value[: found.start()] + _UTF_8 + value[found.end() :]

    headers = [
        (name, stated(value) if name.lower() == "content-type" else value)
        for name, value in response.headers
    ]
    return replace(response, headers=headers)
