"""Concise recordings for tests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from opentabs_py.core.drift.live import LiveRun, StepOutcome
from opentabs_py.core.recording.exchange import Exchange, RecordedCall, Recording, Request, Response

HOME = "https://example.com/"
JSON = [("content-type", "application/json")]
HTML = [("content-type", "text/html; charset=utf-8")]


def got(
    path: str,
    value: Any = None,
    *,
    status: int = 200,
    at: float = 1.0,
    kind: str = "fetch",
    **more: Any,
) -> Exchange:
    """A request of the page, and its response: a string is HTML, anything else JSON."""
    is_html = isinstance(value, str)
    body = value.encode() if is_html else json.dumps(value).encode()
    url = path if "://" in path else f"https://example.com{path}"
    response = Response(status, "", HTML if is_html else JSON, body)
    return Exchange(Request("GET", url, kind=kind), response, started=at, **more)


def sent_on(path: str, to: str, **more: Any) -> Exchange:
    """A request of the page that is redirected."""
    exchange = got(path, status=302, **more)
    assert exchange.response is not None
    return replace(exchange, response=replace(exchange.response, headers=[("location", to)]))


def failed(path: str, error: str, *, at: float = 1.0, kind: str = "fetch") -> Exchange:
    request = Request("GET", f"https://example.com{path}", kind=kind)
    return Exchange(request, None, error, started=at)


def called(
    value: Any = None, error: Mapping[str, Any] | None = None, *, tool: str = "t", **arguments: Any
) -> RecordedCall:
    """A call during which everything happens."""
    return RecordedCall(tool, arguments, value, error, started=0.0, seconds=10.0)


def recording(*parts: Exchange | RecordedCall, **more: Any) -> Recording:
    exchanges = [each for each in parts if isinstance(each, Exchange)]
    calls = [each for each in parts if isinstance(each, RecordedCall)]
    return Recording(HOME, exchanges, calls=calls, **more)


def lived(*parts: Exchange | RecordedCall, category: str | None = None, **more: Any) -> LiveRun:
    """A run with these requests and calls."""
    traffic = recording(*parts)
    outcomes: Sequence[StepOutcome] = [StepOutcome(call, category) for call in traffic.calls]
    return LiveRun(traffic, outcomes, **more)
