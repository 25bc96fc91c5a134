"""Plugins, tabs, browsers and problems as the console shows them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.tool import Tool
from opentabs_py.consent.questions import Questions
from opentabs_py.core.consent import Standing, why_unreviewed
from opentabs_py.core.page_tool_names import site_of
from opentabs_py.core.plugin_names import OURSELVES, PAGE
from opentabs_py.core.protocol import DocumentState, LoadingTab
from opentabs_py.core.tabs.numbers import browser_of, numbers_of
from opentabs_py.core.text import shorten
from opentabs_py.plugins.plugin import Plugin, SkippedPlugin
from opentabs_py.server.tools.registry import ToolRegistry

LONGEST_TITLE: Final = 300
LONGEST_URL: Final = 2_000
LONGEST_TEXT: Final = 4_000
PATTERNS: Final = 20  # of a plugin; the rest are counted

if TYPE_CHECKING:
    from opentabs_py.fleet.link import NatsLink

Rows = dict[str, dict[str, Any]]


def plugin_rows(
    plugins: Sequence[Plugin],
    registry: ToolRegistry,
    pages: Pages,
    *,
    standings: Mapping[str, Standing],
    revision: int,
) -> Rows:
    """Return the plugins, and whatever else has tools, by name.

    Args:
        plugins: The plugins that are served.
        registry: The tools that are served.
        pages: Where the plugins' tools run.
        standings: What the user has said of the plugins.
        revision: Changes whenever tools do, so that a page reads them again.
    """
    counts = Counter(tool.listing.owner for tool in registry.all_tools)
    rows: Rows = {}
    for plugin in plugins:
        manifest = plugin.manifest
        standing = standings.get(manifest.name, "named")
        is_off = why_unreviewed(standing) is not None  # then it runs in no tab, open or not
        rows[manifest.name] = {
            "name": manifest.name,
            "kind": "plugin",
            "title": shorten(manifest.display_name, LONGEST_TITLE),
            "description": shorten(manifest.description, LONGEST_TEXT),
            "version": manifest.version,
            "status": None if is_off else pages.tabs.status(manifest.name),
            "standing": standing,
            "tools": counts.pop(manifest.name, 0),
            "patterns": [*manifest.url_patterns[:PATTERNS]],
            "morePatterns": max(0, len(manifest.url_patterns) - PATTERNS),
            "homepage": manifest.homepage,
            "directory": str(plugin.directory),
            "settings": len(manifest.config_schema),
            "icon": None if manifest.icon_svg is None else _version_of(manifest.icon_svg),
            "revision": revision,
        }
    for name, count in counts.items():
        rows[name] = {
            "name": name,
            "kind": "built-in" if name == OURSELVES else _kind(name, registry.all_tools),
            "title": name,
            "description": "",
            "version": None,
            "status": registry.status(name),
            "standing": "named",
            "tools": count,
            "patterns": [],
            "morePatterns": 0,
            "homepage": None,
            "directory": None,
            "settings": 0,
            "icon": None,
            "revision": revision,
        }
    return rows


def _kind(owner: str, tools: Iterable[Tool]) -> str:
    """Return whether tools without a plugin here are a page's, a fleet's, or written in Python."""
    listings = [each.listing for each in tools if each.listing.owner == owner]
    if any(each.is_of_page for each in listings):
        return "page"
    return "remote" if any(each.needs_tab for each in listings) else "python"


def _version_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def tab_rows(pages: Pages) -> Rows:
    """Return the tabs in which plugins run, by number."""
    names = pages.names
    loading = {str(each.tab_id): _loading(each, names) for each in pages.tabs.loading}
    return loading | {str(each.tab_id): _document(each, names) for each in pages.tabs.documents}


def _document(document: DocumentState, names: Mapping[int, str]) -> dict[str, Any]:
    return {
        "id": document.tab_id,
        "browser": names.get(browser_of(document.tab_id)),
        "title": shorten(document.title, LONGEST_TITLE),
        "url": shorten(document.url, LONGEST_URL),
        "active": document.active,
        "focused": document.focused,
        "protected": document.protected,
        "loading": False,
        "plugins": [
            {
                "name": _owner(name, document.url),
                "readiness": state.readiness,
                "reason": None if state.reason is None else shorten(state.reason, LONGEST_TITLE),
            }
            for name, state in sorted(document.plugins.items())
        ],
    }


def _loading(tab: LoadingTab, names: Mapping[int, str]) -> dict[str, Any]:
    return {
        "id": tab.tab_id,
        "browser": names.get(browser_of(tab.tab_id)),
        "title": "",
        "url": shorten(tab.url, LONGEST_URL),
        "active": False,
        "focused": False,
        "protected": True,
        "loading": True,
        "plugins": [
            {"name": _owner(name, tab.url), "readiness": "pending", "reason": None}
            for name in sorted(tab.plugins)
        ],
    }


def _owner(plugin: str, url: str) -> str:
    """Return what the tools in a tab belong to: a plugin, or the site that registered them."""
    site = site_of(url) if plugin == PAGE else None
    return plugin if site is None else site.owner


def browser_rows(pages: Pages) -> Rows:
    """Return the browsers, by name."""
    return {
        each.name: {
            "name": each.name,
            "number": each.number,
            "profile": each.browser_id,
            "firstTab": numbers_of(each.number).start,
            "connected": each.connected,
            "userAction": each.tabs.user_action,
        }
        for each in pages.bridges
    }


def problem_rows(skipped: Sequence[SkippedPlugin], pages: Pages, link: "NatsLink | None") -> Rows:
    """Return what is wrong: plugins that are skipped, or that a page refused, and a lost fleet.

    Args:
        skipped: The plugins that are not served.
        pages: Where the plugins' tools run.
        link: How an endpoint reaches its fleet.
    """
    rows: Rows = {}
    if link is not None and not link.connected:
        rows["fleet"] = {
            "id": "fleet",
            "plugin": None,
            "directory": None,
            "tab": None,
            "reason": f"NATS at {link.options.addresses} cannot be reached; restart it. "
            "The workers' tools cannot be called until it is back.",
        }
    for each in skipped:
        key = f"{each.plugin}\n{each.reason}"  # one for all plugins of a name
        rows[key] = {
            "id": key,
            "plugin": each.plugin,
            "directory": str(each.directory),
            "tab": None,
            "reason": shorten(each.reason, LONGEST_TEXT),
        }
    for problem in pages.plugin_problems:
        key = f"{problem.plugin}\n{problem.tab_id}\n{problem.message}"
        rows[key] = {
            "id": key,
            "plugin": problem.plugin,
            "directory": None,
            "tab": problem.tab_id,
            "reason": shorten(problem.message, LONGEST_TEXT),
        }
    return rows


def question_rows(questions: Questions, now: float) -> Rows:
    """Return the questions that wait for the user, by id.

    Args:
        questions: The questions.
        now: In seconds since the epoch.
    """
    return {
        each.id: {
            "id": each.id,
            "call": each.call_id,
            "tool": each.tool,
            "title": shorten(each.title, LONGEST_TITLE),
            "plugin": each.plugin,
            "rule": each.rule,
            "arguments": each.arguments,
            "client": _cut_title(each.client),
            "element": each.place.element,
            "site": each.place.site,
            "tabTitle": _cut_title(each.place.title),
            "answers": [*each.answers],
            "about": each.about,
            "until": round(now + questions.seconds_left(each), 1),
        }
        for each in questions.waiting
    }


def _cut_title(title: str | None) -> str | None:
    return None if title is None else shorten(title, LONGEST_TITLE)
