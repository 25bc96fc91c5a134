"""The open tabs, as agents read them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.protocol import DocumentState, LoadingTab, PluginState
from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.tabs.numbers import browser_of
from opentabs_py.core.tabs.owners import SessionKey, TabOwners
from opentabs_py.core.tabs.selection import by_preference
from opentabs_py.core.text import one_line, shorten

# Characters; pages choose these strings, and an agent reads all of them.
LONGEST_TITLE: Final = 120
LONGEST_URL: Final = 500
LONGEST_REASON: Final = 200

ALONE: Final[Mapping[int, str]] = MappingProxyType({0: "default"})

TAB: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "tabId": {"type": "integer"},
        "title": {"type": "string", "description": "Written by the page."},
        "url": {"type": "string"},
        "active": {"type": "boolean", "description": "Whether its window shows it."},
        "browser": {"type": "string", "description": "The browser's name, if there are several."},
        "own": {
            "type": "boolean",
            "description": "true: you opened it; false: used only if tabId names it.",
        },
        "plugins": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "readiness": {
                        "enum": ["ready", "pending", "unavailable", "missing"],
                        "description": "pending: the page is loading; unavailable: for example, "
                        "the user has to sign in; missing: the plugin does not run there.",
                    },
                    "reason": {"type": "string"},
                },
                "required": ["name", "readiness"],
            },
        },
    },
    "required": ["tabId", "title", "url", "active", "plugins"],
}
"""JSON Schema of one tab; open, because tabs may get more members."""

SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"tabs": {"type": "array", "items": TAB}},
    "required": ["tabs"],
}
"""JSON Schema of what `list_tabs` returns; open, because tabs may get more members."""


def list_tabs(
    documents: Sequence[DocumentState],
    loading: Sequence[LoadingTab],
    browsers: Mapping[int, str] = ALONE,
    *,
    owners: TabOwners | None = None,
    client: SessionKey | None = None,
) -> JsonObject:
    """Return the tabs that tools run in, the ones that calls prefer first.

    Those that other clients opened for themselves are left out.

    Args:
        documents: What the tabs show.
        loading: The tabs that show nothing yet.
        browsers: The names of the browsers by number; with several, each tab says whose it is.
        owners: Which tabs belong to which clients.
        client: The session of the client that asks.
    """
    shown = [each for each in by_preference(documents) if each.plugins]
    tabs = [
        *(_describe(each) | _of(each.tab_id, browsers) for each in shown),
        *(_describe_loading(each) | _of(each.tab_id, browsers) for each in loading),
    ]
    if not owners:
        return {"tabs": [*tabs]}
    ids = [*(each.tab_id for each in shown), *(each.tab_id for each in loading)]
    described = dict(zip(ids, tabs, strict=True))
    own = [tab for tab in owners.of(client) if tab in described]
    users = owners.usable(None, ids)
    others = [tab for tab in ids if tab not in own and tab not in users]
    return {
        "tabs": [
            described[tab] | _whose(tab, owners, client)
            for tab in (*own, *users, *others)
            if owners.may_name(client, tab)
        ]
    }


def describe_opened(
    tab_id: int,
    url: str,
    documents: Sequence[DocumentState],
    loading: Sequence[LoadingTab],
    browsers: Mapping[int, str] = ALONE,
    *,
    owners: TabOwners,
    client: SessionKey | None,
) -> JsonObject:
    """Return a tab that a client opened, as `list_tabs` does, even if no plugin runs in it.

    Args:
        tab_id: The tab.
        url: The URL it was opened with.
        documents: What all tabs show.
        loading: The tabs that show nothing yet.
        browsers: The names of the browsers by number.
        owners: Which tabs belong to which clients.
        client: The session of the client.
    """
    blank: JsonObject = {"tabId": tab_id, "title": "", "url": shorten(url, LONGEST_URL)}
    shown = [
        *(_describe(each) for each in documents if each.tab_id == tab_id),
        *(_describe_loading(each) for each in loading if each.tab_id == tab_id),
        blank | {"active": False, "plugins": []},
    ]
    return shown[0] | _of(tab_id, browsers) | _whose(tab_id, owners, client)


def has_reported(tab_id: int, documents: Sequence[DocumentState]) -> bool:
    """Return whether a tab's page has said of each of its plugins whether it is ready."""
    return any(
        document.tab_id == tab_id
        and all(state.readiness != "pending" for state in document.plugins.values())
        for document in documents
    )


def _whose(tab_id: int, owners: TabOwners, client: SessionKey | None) -> JsonObject:
    if client is not None and owners.has_opened(client, tab_id):
        return {"own": True}
    return {} if owners.usable(None, [tab_id]) else {"own": False}


def _of(tab_id: int, browsers: Mapping[int, str]) -> JsonObject:
    return {"browser": browsers[browser_of(tab_id)]} if len(browsers) > 1 else {}


def _describe(document: DocumentState) -> JsonObject:
    return {
        "tabId": document.tab_id,
        "title": shorten(one_line(document.title), LONGEST_TITLE),
        "url": shorten(document.url, LONGEST_URL),
        "active": document.active,
        "plugins": [_describe_plugin(name, document.plugins[name]) for name in _named(document)],
    }


def _describe_plugin(name: str, state: PluginState) -> JsonObject:
    described: JsonObject = {"name": name, "readiness": state.readiness}
    if state.reason is not None:
        described["reason"] = shorten(one_line(state.reason), LONGEST_REASON)
    return described


def _describe_loading(tab: LoadingTab) -> JsonObject:
    return {
        "tabId": tab.tab_id,
        "title": "",
        "url": shorten(tab.url, LONGEST_URL),
        "active": False,
        "plugins": [{"name": name, "readiness": "pending"} for name in _named(tab)],
    }


def _named(tab: DocumentState | LoadingTab) -> Sequence[str]:
    """Return the plugins of a tab; a page's own tools, which are in the list of tools, are none."""
    return sorted(name for name in tab.plugins if name != PAGE)
