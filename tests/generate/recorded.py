"""Concise recordings of a site."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from opentabs_py.core.recording.exchange import Exchange, Recording, Request, Response, Scrubbed
from opentabs_py.generate.plan import PlannedTool
from opentabs_py.generate.site import KnownSite, read_site

HOME = "https://shop.example/"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
OK = object()


def ask(
    asked: str,
    answer: Any = OK,
    *,
    body: Any = None,
    form: Mapping[str, Any] | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    sent: Mapping[str, str] | None = None,
) -> Exchange:
    """A request, such as `GET /api/items?page=2`; a response that is a string is a page."""
    method, _, path = asked.partition(" ")
    is_page = isinstance(answer, str)
    given = dict(sent or {})
    content = b""
    if body is not None:
        content = json.dumps(body).encode()
        given.setdefault("content-type", JSON)
    elif form is not None:
        content, given["content-type"] = urlencode(form, doseq=True).encode(), FORM
    received = {"content-type": "text/html" if is_page else JSON, **(headers or {})}
    text = answer if is_page else ("" if answer is OK else json.dumps(answer))
    url = path if "://" in path else f"https://shop.example{path}"
    kind = "document" if is_page or status in (302, 303) else "fetch"
    return Exchange(
        Request(method, url, [*given.items()], content, kind),
        Response(status, "", [*received.items()], text.encode()),
    )


def site_of(*exchanges: Exchange, chosen: tuple[str, ...] = (), **more: Any) -> KnownSite:
    timed = [
        Exchange(each.request, each.response, each.error, float(index))
        for index, each in enumerate(exchanges)
    ]
    return read_site(Recording(HOME, timed, **more), chosen)


def tools_of(*exchanges: Exchange, **more: Any) -> dict[str, PlannedTool]:
    return {tool.name: tool for tool in site_of(*exchanges, **more).tools}


def secret(replacement: str, kind: str = "token") -> Scrubbed:
    return Scrubbed(kind, "somewhere", replacement, 1)
