"""Recordings to scrub, and parts of those that were."""

import json
from typing import Any

from opentabs_py.core.recording.exchange import Exchange, Headers, Recording, Request, Response
from opentabs_py.core.recording.scrub import scrub
from opentabs_py.core.recording.scrub_rules import ScrubRules

URL = "https://site.test/"


def answer(
    body: Any = b"",
    *,
    url: str = URL,
    mime: str = "application/json",
    headers: Headers = (),
    kind: str = "fetch",
    sent: bytes = b"",
    sent_headers: Headers = (),
) -> Exchange:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Exchange(
        Request("POST" if sent else "GET", url, sent_headers, sent, kind),
        Response(200, "OK", [("Content-Type", mime), *headers], raw),
    )


def scrubbed(*exchanges: Exchange, rules: ScrubRules | None = None, **more: Any) -> list[Exchange]:
    return list(scrub(Recording(URL, exchanges, **more), rules).exchanges)


def body(exchange: Exchange) -> Any:
    assert exchange.response is not None
    assert exchange.response.body is not None
    return json.loads(exchange.response.body)


def text(exchange: Exchange) -> str:
    assert exchange.response is not None
    assert exchange.response.body is not None
    return exchange.response.body.decode()


def page(source: str) -> str:
    [after] = scrubbed(answer(source.encode(), mime="text/html; charset=utf-8"))
    return text(after)
