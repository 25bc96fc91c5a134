"""Page tools, which pages register themselves: on which pages they are, and what is listed.

All that a page says of its tools is supplied by the page and not verified. So it is bounded, marked
as the page's, and never shown with characters that could hide something. Tools of one origin with
the same name, schema and hints are one tool, in several tabs.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, cast

from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.page_tool_names import Naming, PageSite, name_tools, site_of
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import DocumentState, LoadingTab, PageToolsParams, RegisteredTool
from opentabs_py.core.schemas.checker import JsonObject, check_schema
from opentabs_py.core.schemas.patterns import with_patterns
from opentabs_py.core.text import is_seen, quantity, shorten

# What one page may register, and how large, `extension/content/page_tools.js` limits.
MOST: Final = 500  # tools of all pages
MOST_UNSEEN: Final = 100  # lists of documents that are not known yet
LONGEST_TITLE: Final = 80
LONGEST_DESCRIPTION: Final = 1000
LONGEST_NOTE: Final = 300  # a string within a schema
OVER_LIMITS: Final = (
    "a page may have 100 tools, with names of 128 characters and schemas of 16 KB, 256 KB together"
)
_KEPT: Final = "\n\u200c\u200d"
_NOTES: Final = frozenset({"title", "description", "$comment"})
_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class ListedPageTool:
    """One tool as clients see it, of one or several pages of a site.

    Attributes:
        name: Its MCP name.
        other_names: More names by which it can be called.
        site: The pages' origin.
        registered: The tool as the first of these pages registered it.
        input_schema: The JSON Schema of its arguments, with its strings bounded.
    """

    name: str
    other_names: tuple[str, ...]
    site: PageSite
    registered: RegisteredTool
    input_schema: JsonObject

    @property
    def title(self) -> str:
        """Its display name, with its site."""
        title = plain_text(self.registered.title or self.registered.name, LONGEST_TITLE)
        return f"{title} ({self.site.host})"

    @property
    def description(self) -> str:
        """The tool's description, marked as supplied by the page."""
        text = plain_text(self.registered.description, LONGEST_DESCRIPTION)
        return f"A tool of the page {self.site.origin}, which describes it as: {text or 'nothing'}"

    @property
    def annotations(self) -> JsonObject:
        """The page's hints, and what follows from them in MCP's words."""
        tool = self.registered
        hints: JsonObject = {"readOnlyHint": is_read_only(tool)}
        if tool.consequential:
            hints |= {"consequentialHint": True, "destructiveHint": True}
        if tool.untrusted_content:
            hints |= {"untrustedContentHint": True, "openWorldHint": True}
        return hints

    @property
    def meta(self) -> JsonObject:
        """Whose it is, and the page's hints that MCP does not have."""
        return {
            "origin": self.site.origin,
            "name": self.registered.name,
            "consequentialHint": self.registered.consequential,
            "untrustedContentHint": self.registered.untrusted_content,
        }

    def is_same(self, tool: RegisteredTool) -> bool:
        """Return whether a page's tool is this one."""
        own = self.registered
        return (tool.name, tool.input_schema, _hints(tool)) == (
            own.name,
            own.input_schema,
            _hints(own),
        )


@dataclass(slots=True)
class PageRegistrations:
    """What the pages of one browser have registered.

    Attributes:
        version: Another number whenever a tool may have come or gone.
    """

    version: int = 0
    _documents: dict[str, DocumentState] = field(default_factory=dict[str, DocumentState])
    _lists: dict[str, PageToolsParams] = field(default_factory=dict[str, PageToolsParams])

    def add(self, page: PageToolsParams) -> bool:
        """Handle a page's list of its tools; return whether it says something new."""
        if self._lists.get(page.document_id) == page:
            return False
        self._lists[page.document_id] = page
        unseen = [each for each in self._lists if each not in self._documents]
        for document_id in unseen[:-MOST_UNSEEN]:
            del self._lists[document_id]
        self.version += 1
        return True

    def update(self, documents: Sequence[DocumentState], loading: Sequence[LoadingTab]) -> None:
        """Handle a snapshot of all documents.

        A document whose tab is loading may be about to reconnect, so it is remembered.
        """
        before = self._documents
        now = {each.document_id: each for each in documents if PAGE in each.plugins}
        coming = {tab.tab_id for tab in loading} - {each.tab_id for each in documents}
        kept = {
            each.document_id: each
            for each in before.values()
            if each.document_id not in now and each.tab_id in coming
        }
        self._documents = kept | now
        gone = before.keys() - self._documents.keys()
        for document_id in gone:
            self._lists.pop(document_id, None)
        came = (self._documents.keys() - before.keys()) & self._lists.keys()
        moved = any(before[each].url != now[each].url for each in before.keys() & now.keys())
        if gone or came or moved:
            self.version += 1

    def tools(self) -> Iterable[tuple[DocumentState, RegisteredTool]]:
        """Yield every tool of every page."""
        for document_id, document in self._documents.items():
            page = self._lists.get(document_id)
            for tool in page.tools if page is not None else ():
                yield document, tool

    def left_out(self) -> Iterable[tuple[DocumentState, int]]:
        """Yield every page that has tools over the limits, and how many."""
        for document_id, document in self._documents.items():
            page = self._lists.get(document_id)
            if page is not None and page.left_out:
                yield document, page.left_out

    def places(self, tool: ListedPageTool) -> list[tuple[DocumentState, RegisteredTool]]:
        """Return the pages that have a tool now, with their own registration of it."""
        found: dict[str, tuple[DocumentState, RegisteredTool]] = {}
        for document, registered in self.tools():
            if tool.is_same(registered) and site_of(document.url) == tool.site:
                found.setdefault(document.document_id, (document, registered))
        return [*found.values()]

    def may_have(self, tool: ListedPageTool, tab_id: int | None) -> bool:
        """Return whether a page has a tool now, or may still register it because it loads.

        Args:
            tool: The tool.
            tab_id: The page's tab; None for any.
        """
        for document_id, document in self._documents.items():
            if tab_id not in {None, document.tab_id} or site_of(document.url) != tool.site:
                continue
            is_loading = document.plugins[PAGE].readiness == "pending"  # its list may still grow
            registered = self.of_document(document_id)
            if is_loading or registered is None or any(map(tool.is_same, registered)):
                return True
        return False

    def of_document(self, document_id: str) -> Sequence[RegisteredTool] | None:
        """Return the tools of a document; None while it has not said which it has."""
        page = self._lists.get(document_id)
        return None if page is None else page.tools


@dataclass(slots=True)
class SchemaCache:
    """Which schemas are sound; those of pages come again with every list."""

    most: int = 1000
    _known: dict[str, JsonObject | str] = field(default_factory=dict[str, JsonObject | str])

    def read(self, schema: JsonObject) -> JsonObject | str:
        """Return a schema as it is listed, or why it cannot be."""
        key = json.dumps(schema, sort_keys=True)
        known = self._known.get(key)
        if known is None:
            if len(self._known) == self.most:
                self._known.clear()
            known = self._known[key] = read_schema(schema)
        return known


def list_tools(
    browsers: Iterable[PageRegistrations], taken: Collection[str], schemas: SchemaCache
) -> tuple[list[ListedPageTool], dict[str, str]]:
    """Return the listed tools of all pages, and for each other one, why it is not listed.

    Args:
        browsers: What the pages of each have registered.
        taken: The names of other tools, which always keep them.
        schemas: Checks the tools' schemas.
    """
    namings: dict[str, tuple[Naming, PageSite, RegisteredTool, JsonObject]] = {}
    refused: dict[str, str] = {}
    for registrations in browsers:
        for document, tool in registrations.tools():
            site = site_of(document.url)
            if site is None:
                continue
            schema = schemas.read(tool.input_schema)
            what = f"{site.origin} {tool.name!r}"
            if isinstance(schema, str):
                refused[what] = f"its input schema {schema}"
                continue
            identity = json.dumps(
                [site.origin, tool.name, tool.input_schema, _hints(tool)], sort_keys=True
            )
            if len(namings) == MOST and identity not in namings:
                refused[what] = f"{MOST} tools of pages are listed already"
                continue
            naming = Naming(site.host, tool.name, identity)
            namings.setdefault(identity, (naming, site, tool, schema))
        for document, count in registrations.left_out():
            if (site := site_of(document.url)) is not None:
                refused[f"{site.origin}, {quantity(count, 'tool')}"] = OVER_LIMITS
    names = name_tools([naming for naming, *_ in namings.values()], taken)
    tools: list[ListedPageTool] = []
    for name, (naming, site, tool, schema) in zip(names, namings.values(), strict=True):
        if name is None:
            refused[f"{site.origin} {tool.name!r}"] = (
                "other tools have all names that it could have"
            )
        else:
            others = {naming.suffixed()} - {name, *taken}
            tools.append(ListedPageTool(name, tuple(others), site, tool, schema))
    return tools, refused


@dataclass(slots=True)
class Cadence:
    """When to list the tools again: soon after a change, but not more often than clients can read.

    Args:
        rest: Seconds after a change, in which more may come.
        apart: Seconds between two lists.
        share: How much of the time making lists may take; a page that registers large schemas, and
            others all the time, makes lists rarer, and the server no slower.
    """

    rest: float = 0.1
    apart: float = 1.0
    share: float = 0.05
    _pause: float = 0.0
    _changed: float = inf
    _listed: float = -inf

    def due(self, now: float, *, is_changed: bool) -> float:
        """Return when to list the tools; never, if they have not changed."""
        if not is_changed:
            self._changed = inf
            return inf
        self._changed = min(self._changed, now)
        return max(self._changed + self.rest, self._listed + max(self.apart, self._pause))

    def handle_listed(self, now: float, *, took: float = 0.0) -> None:
        """Handle that the tools were listed."""
        self._changed, self._listed, self._pause = inf, now, took / self.share


def wire_name(tool: RegisteredTool) -> str:
    """Return the name of a page's tool in a dispatch: of this registration, and no later one."""
    return f"{tool.id} {tool.name}"


def is_read_only(tool: RegisteredTool) -> bool:
    """Return whether a tool says that it changes nothing, and not that its calls matter."""
    return tool.read_only and not tool.consequential


def plain_text(text: str, limit: int) -> str:
    """Return a page's text, cut, without characters that are not shown as they are."""
    clean = "".join(c if is_seen(c) or c in _KEPT else " " for c in text).strip()
    return shorten(clean, limit)


def read_schema(schema: JsonObject) -> JsonObject | str:
    """Return a page's input schema with its strings bounded, or why it cannot be served."""
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object":
        return f"has the type {schema['type']!r} at its root; write 'object'"
    if not isinstance(properties, dict):
        return "has properties that are not an object"
    if TAB_ID in properties:
        return f"has a property {TAB_ID!r}, which every tool of a page has already"
    try:
        check_schema(with_patterns(schema, lambda _pattern: False))
    except ValueError as error:
        return str(error)
    return cast("JsonObject", _bounded({**schema, "type": "object"}, is_named=False))


def _bounded(value: object, *, is_named: bool) -> object:
    """Return a part of a schema with its strings bounded; the keys of a named one are free."""
    if isinstance(value, list):
        return [_bounded(each, is_named=False) for each in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    part = cast("Mapping[str, object]", value)
    return {
        key: plain_text(each, LONGEST_NOTE)
        if key in _NOTES and not is_named and isinstance(each, str)
        else _bounded(each, is_named=key in _NAMED and not is_named)
        for key, each in part.items()
    }


def _hints(tool: RegisteredTool) -> tuple[bool, bool, bool]:
    return tool.read_only, tool.consequential, tool.untrusted_content
