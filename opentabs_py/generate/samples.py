"""Samples of a site's API from a recording: requests, taken apart, and their responses."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, cast
from urllib.parse import parse_qs, unquote, urlsplit

from opentabs_py.core.json_numbers import (
    inexact_number,
    read_as_javascript,
    refuse_constant,
)
from opentabs_py.core.recording.exchange import (
    DOCUMENT,
    Exchange,
    Recording,
    Request,
    is_html,
    is_json,
)
from opentabs_py.core.recording.matching import graphql_operation
from opentabs_py.core.recording.reading import is_read
from opentabs_py.core.recording.rpc import is_rpc, rpc_method
from opentabs_py.core.shapes.routes import is_same_site
from opentabs_py.core.sites.origins import origin_of
from opentabs_py.core.text import path_text

Style = Literal["rest", "graphql", "rpc", "page"]

_API: Final = frozenset({"fetch", "xhr", DOCUMENT})
_GRAPHQL: Final = ("query", "extensions", "operationName")
_PERSISTED: Final = "persistedQuery"
_WRITES: Final = re.compile(
    r"(?:add|cancel|clear|create|delete|destroy|disable|dismiss|enable|log_?out|mark|purge|remove"
    r"|reset|revoke|send|sign_?out|submit|subscribe|toggle|unfollow|unlike|unsubscribe)"
    r"(?:$|[A-Z_.-].*)"
)
_MOST_MEMBERS: Final = 500  # of a query and a payload; each would be an argument of a tool
_DEEPEST: Final = 100  # objects and arrays in each other, in what a tool sends
_HOST: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?")


@dataclass(frozen=True, slots=True)
class Sample:
    """A request that a page of the site sent, and its response.

    Attributes:
        exchange: As it was recorded.
        style: `page` if the response is an HTML page that the browser opened.
        origin: Such as `https://api.example.com`; empty if it is that of the page.
        path: The decoded segments of the path.
        query: The members of the query; a name that is there several times has several values.
        operation: The name of the GraphQL operation, or the method of JSON-RPC.
        envelope: Of GraphQL and JSON-RPC, what surrounds the payload, such as the query.
        payload: The members that the request sends: a JSON object, a form, GraphQL's variables or
            the parameters of JSON-RPC. None if it sends none.
        other: What the body is if it is not an object, in a tuple; empty if there is no such body.
        is_form: Whether the body is a form, not JSON.
        value: The response's JSON, in a tuple; empty if it is not JSON.
        page: The response's HTML; empty if it is not HTML.
    """

    exchange: Exchange
    style: Style
    origin: str
    path: Sequence[str]
    query: Mapping[str, Sequence[str]]
    operation: str = ""
    envelope: Mapping[str, Any] | None = None
    payload: Mapping[str, Any] | None = None
    other: tuple[Any, ...] = ()
    is_form: bool = False
    value: tuple[Any, ...] = ()
    page: str = ""

    @property
    def request(self) -> Request:
        """The request."""
        return self.exchange.request

    @property
    def status(self) -> int:
        """The HTTP status; 0 if there was no response."""
        return 0 if self.exchange.response is None else self.exchange.response.status

    @property
    def works(self) -> bool:
        """Whether the site did what it was asked for."""
        if not 200 <= self.status < 400:
            return False
        if self.style in ("graphql", "rpc") and self.value and isinstance(self.value[0], dict):
            members = cast("Mapping[str, Any]", self.value[0])
            return not members.get("errors") and members.get("error") is None
        return True

    @property
    def has_other_body(self) -> bool:
        """Whether the request sends something that is neither JSON nor a URL-encoded form."""
        is_known = self.envelope is not None or self.payload is not None or bool(self.other)
        return self.request.has_lost_body or (bool(self.request.body) and not is_known)

    @property
    def is_read(self) -> bool:
        """Whether the request changes nothing.

        The path of a GET may say that it does, but not that of a page, such as `/notes/add`.
        """
        may_write = self.style == "rest" and _WRITES.fullmatch(self.path[-1]) is not None
        return is_read(self.request) and not may_write


def samples_of(recording: Recording) -> Sequence[Sample]:
    """Return what pages asked the site for: data, and pages."""
    return [
        sample
        for exchange in recording.exchanges
        if exchange.request.kind in _API
        and exchange.request.method not in ("OPTIONS", "HEAD")
        and is_same_site(exchange.request.url, recording.url)
        and (sample := _sample(exchange, recording.url)) is not None
        and len(sample.query) + len(sample.payload or ()) <= _MOST_MEMBERS
    ]


def _sample(exchange: Exchange, home: str) -> Sample | None:
    request, response = exchange.request, exchange.response
    parts, origin = urlsplit(request.url), origin_of(request.url)
    if origin == origin_of(home):
        origin = ""
    elif not _HOST.fullmatch(parts.netloc):
        return None  # no browser sends that
    query = parse_qs(parts.query, keep_blank_values=True)
    sample = Sample(
        exchange,
        "rest",
        origin,
        [unquote(each) for each in parts.path.split("/")[1:]] or [""],
        query,
        value=_response(exchange),
    )
    body = _body(request)
    members = cast("Mapping[str, Any]", body[0]) if body and isinstance(body[0], dict) else None
    if request.kind == DOCUMENT:
        page = response.body if response and is_html(response.mime) else None
        html = (page or b"").decode("utf-8", "replace")
        return replace(sample, style="page", payload=members, is_form=True, page=html)
    if body and isinstance(body[0], list) and _is_batch(cast("Sequence[Any]", body[0])):
        return None  # several operations in one request
    if (asked := _graphql(members, query)) is not None:
        variables = asked.get("variables")
        has_variables = isinstance(variables, dict)
        return replace(
            sample,
            style="graphql",
            operation=graphql_operation(asked),
            envelope={
                name: value
                for name, value in asked.items()
                if name != "variables" or not has_variables
            },
            payload=cast("Mapping[str, Any]", variables) if has_variables else None,
        )
    if members is None:
        return replace(sample, other=body)
    method = rpc_method(members)
    if not method:
        return replace(sample, payload=members, is_form=request.is_form)
    params = members.get("params", {})
    is_named = isinstance(params, dict)
    return replace(
        sample,
        style="rpc",
        operation=method,
        envelope={name: value for name, value in members.items() if name != "params"},
        payload=cast("Mapping[str, Any]", params) if is_named else None,
        other=() if is_named else (params,),
    )


def _body(request: Request) -> tuple[Any, ...]:
    """Return what a request sends, in a tuple; empty if it is nothing that a tool could send."""
    if not request.body:
        return ()
    text = request.body.decode("utf-8", "replace")
    if request.is_form:
        fields = parse_qs(text, keep_blank_values=True)
        return ({name: each if len(each) > 1 else each[0] for name, each in fields.items()},)
    try:
        return (_sent(text),)
    except (ValueError, RecursionError):
        return ()


def _sent(text: str) -> Any:
    """Return the value of JSON in a request.

    Raises:
        ValueError: It is not JSON, or not with numbers that a page could send, or too deep.
    """
    value = json.loads(text, parse_constant=refuse_constant)
    if path := inexact_number(value):
        raise ValueError(f"JavaScript would send another number for {path_text(path)}")
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inner(each)]
    if level:
        raise ValueError("it is nested too deeply")
    return value


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("Mapping[str, Any]", value).values()
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()


def _response(exchange: Exchange) -> tuple[Any, ...]:
    response = exchange.response
    if response is None or not response.body or not is_json(response.mime):
        return ()
    try:
        return (read_as_javascript(response.body),)
    except (ValueError, RecursionError):
        return ()


def _graphql(
    members: Mapping[str, Any] | None, query: Mapping[str, Sequence[str]]
) -> Mapping[str, Any] | None:
    """Return what a request asks of GraphQL, by POST or by GET; None if it is another request."""
    asked: dict[str, Any] = dict(members or {})
    if members is None and ("variables" in query or "extensions" in query):
        for name, values in query.items():
            try:
                asked[name] = _sent(values[0]) if values[0][:1] in ("{", "[") else values[0]
            except (ValueError, RecursionError):
                asked[name] = values[0]
    if not isinstance(asked.get("variables") or {}, dict) or not graphql_operation(asked):
        return None
    extensions = asked.get("extensions")
    is_persisted = isinstance(extensions, dict) and _PERSISTED in extensions
    return asked if isinstance(asked.get("query"), str) or is_persisted else None


def _is_batch(body: Sequence[Any]) -> bool:
    return bool(body) and all(
        is_rpc(each) or (isinstance(each, dict) and any(name in each for name in _GRAPHQL))
        for each in body
    )
