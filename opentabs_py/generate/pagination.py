"""Recognize how a site divides a long list into pages."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from opentabs_py.core.recording.exchange import header
from opentabs_py.core.sites.origins import resolve_link
from opentabs_py.generate.json_paths import Path, at, is_list_of_objects, walk
from opentabs_py.generate.operations import Operation
from opentabs_py.generate.samples import Sample

Kind = Literal["page", "offset", "cursor", "link"]

_PAGE: Final = re.compile(r"p|pg|page|page_?(no|num|number|index)|current_?page", re.IGNORECASE)
_OFFSET: Final = re.compile(r"offset|skip|start|start_?index|from", re.IGNORECASE)
_NEXT: Final = re.compile(
    r".*(next|after|cursor|continu|older|token|marker|scroll_?id).*", re.IGNORECASE
)
_LINK: Final = re.compile(
    r"(.*\.)?(@odata\.)?next(_?(link|url|page|href))?(\.href)?", re.IGNORECASE
)
_MORE: Final = re.compile(r"(has_?)?(more|next)(_?(page|results|items))?", re.IGNORECASE)
_PAGES: Final = re.compile(
    r"pages(_?count)?|(total|num|number_of)_?pages?(_?count)?|page_?(count|total)|(last|max)_?page",
    re.IGNORECASE,
)
_TOTAL: Final = re.compile(
    r"(total|count)(_?(count|items|results|hits|elements|records))?", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"[0-9]{1,15}")  # JavaScript rounds longer ones
_LINK_HEADER: Final = re.compile(r'<([^<>]+)>\s*;[^,<]*\brel="?next"?')


@dataclass(frozen=True, slots=True)
class Pagination:
    """How one page leads to the next.

    Attributes:
        kind: `page` and `offset` count, `cursor` is a string in each response for the next
            request, `link` is a URL.
        member: The member of the request that says which page; empty for links.
        in_payload: Whether it is in the payload, not in the query.
        items: Where the list is in a response.
        node: The member of each of its items that is the item itself, as in GraphQL's edges.
        first: What the member is for the first page, in a tuple; empty if it is not sent then.
        next: Where the cursor or the link is in a response; empty for a `Link` header.
        more: Where a response says whether there are more pages; empty if it does not.
        pages: Where it says how many pages there are; empty if it does not.
        total: Where it says how many items there are; empty if it does not.
    """

    kind: Kind
    items: Path
    node: str = ""
    member: str = ""
    in_payload: bool = False
    first: tuple[Any, ...] = ()
    next: Path = ()
    more: Path = ()
    pages: Path = ()
    total: Path = ()

    def place(self, sample: Sample) -> tuple[Any, ...]:
        """Return which page a request asks for, in a tuple; empty if it does not say."""
        return _member(sample, self.member, in_payload=self.in_payload)

    def is_first(self, sample: Sample) -> bool:
        """Return whether a request asks for the first page."""
        return [*map(str, self.place(sample))] == [*map(str, self.first)]

    def first_pages(self, samples: Sequence[Sample]) -> Sequence[Sample]:
        """Return the requests that do not follow a link to a further page."""
        if self.kind != "link":
            return samples
        links = {self.following(1, 0, each)[:1] for each in samples if each.value}
        return [each for each in samples if (each.request.url,) not in links]

    def items_of(self, sample: Sample) -> Sequence[Any]:
        """Return the items in a response."""
        found: Sequence[Any] = at(sample.value[0], self.items) or []
        return [each[self.node] for each in found] if self.node else found

    def following(self, page: int, taken: int, sample: Sample) -> tuple[Any, ...]:
        """Return which page follows a response, as `place`; empty if none does.

        Args:
            page: The number of pages so far.
            taken: The number of items so far.
            sample: The last page.
        """
        response = sample.value[0]
        if self.kind == "link":
            found = at(response, self.next) if self.next else link_header(sample)
            return (resolve_link(sample.request.url, found),) if found else ()
        if self.kind == "cursor":
            found = at(response, self.next)
            if self.more and at(response, self.more) is False:
                return ()  # the last page may have a cursor, too: that of its last item
            return (found,) if found not in (None, "", False) else ()
        if self.is_last(page, taken, response):
            return ()
        start = self.first[0] if self.first else (1 if self.kind == "page" else 0)
        return (start + page if self.kind == "page" else start + taken,)

    def is_last(self, page: int, taken: int, response: Any) -> bool:
        """Return whether a response that counts is the last page."""
        if self.more:
            return not at(response, self.more)
        if self.pages:
            return page >= (at(response, self.pages) or 0)
        if self.total:
            return taken >= (at(response, self.total) or 0)
        return not at(response, self.items)


def find_pagination(operation: Operation) -> Pagination | None:
    """Return how an operation's list is divided; None if it has none, or gives it whole."""
    responses = [each.value[0] for each in operation.answered]
    items = find_items(responses)
    if not operation.is_read or items is None:
        return None
    lists = [at(response, items) for response in responses]
    if not all(isinstance(each, list | None) for each in lists):
        return None  # what joins the pages could not read all of them
    ends = {
        "more": _find(responses, _MORE, lambda value: isinstance(value, bool)),
        "pages": _find(responses, _PAGES, _is_count),
        "total": _find(responses, _TOTAL, _is_count),
    }
    if len(lists) > 1 and all(
        at(response, ends["total"]) == len(some or ())
        for response, some in zip(responses, lists, strict=True)
    ):
        ends["total"] = ()  # each page counts its own items
    found = (
        _by_link(operation, items)
        or _by_cursor(operation, items, ends)
        or _by_number(operation, items, ends)
    )
    are_edges = items[-1:] == ("edges",) and all(
        isinstance(each, dict) and "node" in each for some in lists for each in some or ()
    )
    return replace(found, node="node") if found is not None and are_edges else found


def find_items(responses: Sequence[Any]) -> Path | None:
    """Return where the longest list of objects is in some responses; None if there is none."""
    longest: dict[Path, int] = {}
    for response in responses:
        for path, value in walk(response):
            if is_list_of_objects(value):
                longest[path] = longest.get(path, 0) + len(value)
    return max(longest, key=lambda path: longest[path], default=None)


def link_header(sample: Sample) -> str | None:
    """Return the URL of the next page in a `Link` header, as GitHub sends it."""
    response = sample.exchange.response
    found = _LINK_HEADER.search((response and header(response.headers, "link")) or "")
    return None if found is None else found[1]


def _by_link(operation: Operation, items: Path) -> Pagination | None:
    for sample in operation.answered:
        ours = urlsplit(sample.request.url).path
        for path, value in walk(sample.value[0]):
            is_link = isinstance(value, str) and _LINK.fullmatch(".".join(path))
            if is_link and urlsplit(resolve_link(sample.request.url, value)).path == ours:
                return Pagination("link", items, next=path)
        if link_header(sample) is not None:
            return Pagination("link", items)
    return None


def _by_cursor(operation: Operation, items: Path, ends: Mapping[str, Path]) -> Pagination | None:
    cursors: dict[str, Path] = {}
    for sample in operation.answered:
        for path, value in walk(sample.value[0]):
            if _is_cursor(path, value):
                cursors.setdefault(str(value), path)
    for sample in operation.answered:
        for in_payload, name, value in _members(sample):
            source = cursors.get(str(value))
            if source is None or str(at(sample.value[0], source)) == str(value):
                continue  # the second is an echo, such as of a session's token
            places = [_member(each, name, in_payload=in_payload) for each in operation.answered]
            if all([*map(str, place)] == [str(value)] for place in places):
                continue  # it leads nowhere
            first = next((p for p in places if not (p and str(p[0]) in cursors)), ())
            return Pagination("cursor", items, "", name, in_payload, first, source, **ends)
    return None


def _by_number(operation: Operation, items: Path, ends: Mapping[str, Path]) -> Pagination | None:
    kinds: Sequence[tuple[Kind, re.Pattern[str]]] = (("page", _PAGE), ("offset", _OFFSET))
    for kind, pattern in kinds:
        for sample in operation.answered:
            for in_payload, name, value in _members(sample):
                if not pattern.fullmatch(name) or not _NUMBER.fullmatch(str(value)):
                    continue
                places = [_member(each, name, in_payload=in_payload) for each in operation.answered]
                known = [
                    int(place[0]) for place in places if place and _NUMBER.fullmatch(str(place[0]))
                ]
                is_sent_first = all(places) or min(known) <= (1 if kind == "page" else 0)
                first = (min(known),) if is_sent_first else ()
                return Pagination(kind, items, "", name, in_payload, first, **ends)
    return None


def _member(sample: Sample, name: str, *, in_payload: bool) -> tuple[Any, ...]:
    if in_payload:
        payload = sample.payload or {}
        return (payload[name],) if name in payload else ()
    return tuple(sample.query.get(name, ())[:1])


def _members(sample: Sample) -> Sequence[tuple[bool, str, Any]]:
    found = [(False, name, values[0]) for name, values in sample.query.items()]
    if sample.style == "graphql" and sample.request.method == "GET":
        found = []  # its query is the envelope
    return [
        *found,
        *((True, name, value) for name, value in (sample.payload or {}).items()
          if isinstance(value, str | int)),
    ]  # fmt: skip


def _is_cursor(path: Path, value: Any) -> bool:
    return (
        bool(path)
        and not isinstance(value, bool)
        and isinstance(value, str | int)
        and value != ""
        and any(_NEXT.fullmatch(name) for name in path[-2:])
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _find(responses: Sequence[Any], names: re.Pattern[str], accept: Callable[[Any], bool]) -> Path:
    for response in responses:
        for path, value in walk(response):
            if path and names.fullmatch(path[-1]) and accept(value):
                return path
    return ()
