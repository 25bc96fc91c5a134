"""Group requests by route of a site's API."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from opentabs_py.core.recording.exchange import Request, is_json
from opentabs_py.core.recording.matching import comparable
from opentabs_py.core.recording.rpc import rpc_method
from opentabs_py.core.shapes.texts import is_id
from opentabs_py.core.sites.origins import origin_of

ID: Final = "{id}"
_LABELS: Final = 2  # of a host name, which say whose site it is


@dataclass(frozen=True, slots=True, order=True)
class Route:
    """A part of a site's API.

    Attributes:
        path: The path of its URLs, with `{id}` for ids, such as `/api/channels/{id}`.
        method: In capital letters.
        operation: The name of the GraphQL operation or the method of JSON-RPC; else empty.
        origin: Such as `https://api.example.com`; empty if it is the one of the page.
    """

    path: str
    method: str = "GET"
    operation: str = ""
    origin: str = ""

    def __str__(self) -> str:
        operation = f" {self.operation}" if self.operation else ""
        return f"{self.method} {self.origin}{self.path}{operation}"


def route_of(request: Request, page_url: str) -> Route:
    """Return the route of a request.

    Args:
        request: The request.
        page_url: The URL of the page that was opened first.
    """
    origin, home = origin_of(request.url), origin_of(page_url)
    segments = urlsplit(request.url).path.split("/")
    path = "/".join(ID if is_id(unquote(each)) else each for each in segments) or "/"
    operation = comparable(request).operation or _called(request)
    return Route(path, request.method, operation, "" if origin == home else origin)


def _called(request: Request) -> str:
    """Return the method that a request calls by JSON-RPC; an empty string if it calls none."""
    if not request.body or not is_json(request.mime):
        return ""
    try:
        return rpc_method(json.loads(request.body))
    except (ValueError, RecursionError):
        return ""


def is_same_site(url: str, page_url: str) -> bool:
    """Return whether a URL belongs to the site of a page, as `api.example.com` does."""
    return _site(url) == _site(page_url)


def _site(url: str) -> str | Sequence[str]:
    host = (urlsplit(url).hostname or "").rstrip(".")
    if ":" in host or host.rpartition(".")[2].isdecimal():
        return host
    return host.split(".")[-_LABELS:]
