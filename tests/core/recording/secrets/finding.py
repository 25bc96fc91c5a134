"""Recordings of one request, response or message, and the secrets that are found in them."""

import base64
import json
from typing import Any

from opentabs_py.core.recording.exchange import (
    Exchange,
    Frame,
    Headers,
    RecordedSocket,
    Recording,
    Request,
    Response,
)
from opentabs_py.core.recording.scrub_rules import ScrubRules
from opentabs_py.core.recording.secrets.forms import Kind
from opentabs_py.core.recording.secrets.search import find_secrets

URL = "https://site.test/"
ME = "https://site.test/api/me"
SECRET = "k3yOfSomeone9"  # recognized only by the name of what contains it
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data; boundary=x"
TOKEN: tuple[Kind, str, bool] = ("token", "token", True)


def asked(
    url: str = URL, headers: Headers = (), body: bytes = b"", kind: str = "fetch", mime: str = JSON
) -> Recording:
    """A recording of one request."""
    request = Request("POST", url, [("Content-Type", mime), *headers], body, kind)
    return Recording(URL, [Exchange(request, None)])


def answered(
    body: Any, *, url: str = URL, mime: str = JSON, headers: Headers = (), kind: str = "fetch"
) -> Recording:
    """A recording of one response."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = Response(200, "OK", [("Content-Type", mime), *headers], raw)
    return Recording(URL, [Exchange(Request("GET", url, [], b"", kind), response)])


def stored(**state: Any) -> Recording:
    return Recording(URL, storage_state=state)


def found(
    recording: Recording, rules: ScrubRules | None = None
) -> dict[str, tuple[Kind, str, bool]]:
    """Return the secrets: their kind, what first contained them, and whether secret everywhere."""
    secrets = find_secrets(recording, rules or ScrubRules())
    return {each.text: (each.kind, each.where, each.is_distinct) for each in secrets}


def socket(data: str | bytes) -> Recording:
    """A recording of a WebSocket message."""
    return Recording(
        URL, sockets=[RecordedSocket("wss://site.test/", frames=[Frame(0.0, True, data)])]
    )


def multipart(name: str, value: str) -> bytes:
    head = f'--x\r\nContent-Disposition: form-data; name="{name}"\r\nContent-Type: text/plain'
    return f"{head}\r\n\r\n{value}\r\n--x--\r\n".encode()


def basic(credentials: str) -> Headers:
    return [("Authorization", f"Basic {base64.b64encode(credentials.encode()).decode()}")]
