"""Compare two requests, and describe how they differ.

Method, URL, query and body count; headers do not, and neither do members that change from one
visit to the next, such as a timestamp that only prevents caching.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

from opentabs_py.core.recording.exchange import Request, is_json
from opentabs_py.core.recording.gzipped import unzipped
from opentabs_py.core.recording.rpc import is_rpc
from opentabs_py.core.sites.origins import origin_of
from opentabs_py.core.text import shorten, well_formed

VOLATILE: Final = frozenset(
    """
    _ _t cachebust cachebuster cb clientmutationid correlationid nonce rand random requestid rnd t
    timestamp traceid ts
    """.split()  # noqa: SIM905 (a list has one line per word)
)
_READABLE: Final = "@:!$&'()*+,;=~"  # in a path, besides letters, digits and _.-
_LONGEST: Final = 200  # characters of a value in a difference
_PERSISTED: Final = "extensions"

Part = Literal["method", "origin", "path", "query", "operation", "body"]
# How much a difference counts against a request being the one that was meant.
_WEIGHTS: Final[Mapping[Part, int]] = {
    "origin": 8,
    "operation": 6,
    "method": 4,
    "path": 3,
    "query": 1,
    "body": 1,
}


class Difference(NamedTuple):
    """One difference between two requests.

    Attributes:
        part: The part of the request.
        name: The member of the query or body, or an empty string.
        recorded: Its value in the recording; None if it has none there.
        sent: Its value in the request; None if it has none there.
    """

    part: Part
    name: str
    recorded: str | None
    sent: str | None

    def __str__(self) -> str:
        what = f"{self.part} {self.name}" if self.name else self.part
        values = [
            f"{who} nothing" if value is None else f"{who} {shorten(value, _LONGEST)}"
            for who, value in (("recorded", self.recorded), ("sent", self.sent))
        ]
        return f"{what}: {', '.join(values)}"


@dataclass(frozen=True, slots=True)
class Comparable:
    """What counts of a request.

    Attributes:
        method: In capital letters.
        origin: `https://example.com`.
        path: The path of the address, with as little percent-encoding as possible.
        operation: The name of its GraphQL operations, if it has any.
        query: The members of the query by name, and of a name by number.
        body: The members of the body by their path.
    """

    method: str
    origin: str
    path: str
    operation: str
    query: Mapping[str, str]
    body: Mapping[str, str]

    @property
    def key(self) -> tuple[Any, ...]:
        """What is equal for equal requests."""
        return (
            self.method,
            self.origin,
            self.path,
            self.operation,
            tuple(sorted(self.query.items())),
            tuple(sorted(self.body.items())),
        )


def comparable(request: Request, volatile: Iterable[str] = ()) -> Comparable:
    """Return what counts of a request.

    Args:
        request: The request.
        volatile: Names of members that do not count, besides the usual ones.
    """
    ignored = VOLATILE | {_plain(each) for each in volatile}
    parts = urlsplit(request.url)
    operation, body = _body(request, ignored)
    return Comparable(
        request.method,
        origin_of(request.url),
        _decoded(parts.path) or "/",
        operation,
        _numbered(parse_qsl(parts.query, keep_blank_values=True), ignored),
        body,
    )


def is_volatile(name: str) -> bool:
    """Return whether a member of a query or a body usually only prevents caching, or counts."""
    return _plain(name) in VOLATILE


def differences(recorded: Comparable, sent: Comparable) -> Sequence[Difference]:
    """Return how a request differs from a recorded one."""
    whole: Sequence[tuple[Part, str, str]] = (
        ("method", recorded.method, sent.method),
        ("origin", recorded.origin, sent.origin),
        ("path", recorded.path, sent.path),
        ("operation", recorded.operation, sent.operation),
    )
    members: Sequence[tuple[Part, Mapping[str, str], Mapping[str, str]]] = (
        ("query", recorded.query, sent.query),
        ("body", recorded.body, sent.body),
    )
    found = [Difference(part, "", old or None, new or None) for part, old, new in whole]
    found += [
        Difference(part, name, old.get(name), new.get(name))
        for part, old, new in members
        for name in sorted({*old, *new})
    ]
    return [each for each in found if each.recorded != each.sent]


def distance(recorded: Comparable, sent: Comparable) -> float:
    """Return how far a recorded request is from one that was sent; 0 if they are the same."""
    total = 0.0
    for each in differences(recorded, sent):
        weight = float(_WEIGHTS[each.part])
        if each.part == "path":
            weight *= _path_distance(recorded.path, sent.path)
        total += weight
    return total


def _decoded(path: str) -> str:
    """Return a path in the one of its encodings that encodes the fewest characters."""
    segments = map(unquote_to_bytes, well_formed(path).split("/"))
    return "/".join(quote(each, safe=_READABLE) for each in segments)


def _path_distance(one: str, other: str) -> float:
    a, b = one.split("/"), other.split("/")
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def _body(request: Request, ignored: frozenset[str]) -> tuple[str, Mapping[str, str]]:
    if not request.body:
        return "", {}
    text = unzipped(request.body).decode("utf-8", "replace")
    if request.is_form:
        return "", _numbered(parse_qsl(text, keep_blank_values=True), ignored)
    if request.mime.startswith("multipart/"):
        boundary = text.partition("\r\n")[0]
        return "", {"": text.replace(boundary, "--") if boundary else text}
    if is_json(request.mime) or text[:1] in ("{", "["):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return "", {"": text}
        members: dict[str, str] = {}
        operations = [graphql_operation(each) for each in _as_list(value)]
        if is_rpc(value):  # its id only numbers the request
            value = {name: each for name, each in value.items() if name != "id"}
        _flatten(value, "", members, ignored)
        return " ".join(filter(None, operations)), members
    return "", {"": text}


def graphql_operation(value: Any) -> str:
    """Return the name of a GraphQL operation; an empty string if this is not one."""
    if not isinstance(value, dict):
        return ""
    members = cast("dict[str, Any]", value)
    query, name = members.get("query"), members.get("operationName")
    if isinstance(name, str) and ("query" in members or _PERSISTED in members):
        return name
    if isinstance(query, str):
        found = re.match(r"\s*(?:query|mutation|subscription)\s+(\w+)", query)
        return found[1] if found else ""
    return ""


def _flatten(value: Any, path: str, into: dict[str, str], ignored: frozenset[str]) -> None:
    pending: list[tuple[str, Any]] = [(path, value)]
    while pending:  # without recursion, for a page can send what it likes
        at, each = pending.pop()
        if isinstance(each, dict) and each:
            for name, below in cast("dict[str, Any]", each).items():
                if _plain(name) not in ignored:
                    pending.append((f"{at}.{name}" if at else name, below))
        elif isinstance(each, list) and each:
            pending.extend(
                (f"{at}[{index}]", below) for index, below in enumerate(cast("Sequence[Any]", each))
            )
        elif at.rpartition(".")[2] == "query" and isinstance(each, str):
            into[at] = json.dumps(" ".join(each.split()))  # a GraphQL document's layout
        else:
            into[at] = json.dumps(each, sort_keys=True)


def _numbered(pairs: Iterable[tuple[str, str]], ignored: frozenset[str]) -> Mapping[str, str]:
    members: dict[str, str] = {}
    for name, value in pairs:
        if _plain(name) in ignored:
            continue
        unique, number = name, 1
        while unique in members:
            number += 1
            unique = f"{name} ({number})"
        members[unique] = value
    return members


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower() or name


def _as_list(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list) else [value]
