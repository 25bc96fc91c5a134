"""Choose the browser for a call, where a server has several.

Each browser may be signed in as another user, so a call is never sent to one of them by a guess:
what cannot be decided is an error that names them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from opentabs_py.core import failures
from opentabs_py.core.protocol import DocumentState, HelloParams, LoadingTab, TabsParams
from opentabs_py.core.tabs.numbers import browser_of, numbers_of
from opentabs_py.core.tabs.owners import TabOwners
from opentabs_py.core.tabs.selection import PluginStatus, Tabs, Target, Wait, by_preference
from opentabs_py.errors import CallRefusedError, ChainError

Snapshot = TypeVar("Snapshot", HelloParams, TabsParams)


class Browser(Protocol):
    """A browser that may take a call, such as a `Bridge`.

    Attributes:
        name: Its name, for users and agents.
        tabs: Its tabs, numbered among those of all browsers.
        number: The number that those of its tabs begin with.
    """

    name: str
    tabs: Tabs
    number: int


class JoinedTabs:
    """The tabs of all browsers as one; always current.

    Args:
        all_tabs: The tabs of each browser.

    Attributes:
        owners: Which tabs belong to which clients; `Pages` shares it with the tabs of each browser.
    """

    def __init__(self, all_tabs: Sequence[Tabs]) -> None:
        self._all = all_tabs
        self.owners = TabOwners()

    @property
    def documents(self) -> Sequence[DocumentState]:
        """The documents of all browsers."""
        return [document for tabs in self._all for document in tabs.documents]

    @property
    def loading(self) -> Sequence[LoadingTab]:
        """The tabs of all browsers whose document has not reported yet."""
        return [tab for tabs in self._all for tab in tabs.loading]

    @property
    def has_browser(self) -> bool:
        """Whether any browser is there."""
        return any(tabs.has_browser for tabs in self._all)

    def status(self, plugin: str) -> PluginStatus:
        """Return the best status of a plugin in any browser."""
        found = {tabs.status(plugin) for tabs in self._all}
        if "ready" in found:
            return "ready"
        return "unavailable" if "unavailable" in found else "closed"

    def why_disconnected(self, now: float) -> Wait | ChainError | None:
        """Return None while an extension is connected; otherwise, wait for one or fail.

        An extension that has just disconnected is waited for, whatever the others do.
        """
        gaps = [tabs.why_disconnected(now) for tabs in self._all]
        waits = [gap for gap in gaps if isinstance(gap, Wait)]
        if waits:
            return min(waits, key=lambda wait: wait.until)
        return None if None in gaps else gaps[0]


def choose(
    browsers: Sequence[Browser],
    target: Target,
    last: int | None,
    now: float,
    ranks: Sequence[tuple[float, int]] | None = None,
) -> int | Wait | ChainError:
    """Choose the browser for a call, by its index.

    The named tab's; else that of a tab that this client opened for itself, and no other if it
    opened one for the plugin; else the one in which this client last used the plugin; else the only
    one in which the plugin is ready; else, of several, the one whose focused tab it is ready in, or
    of interchangeable browsers, the one with the fewest calls. If it is ready nowhere, the same
    applies to browsers that have a tab of it at all.

    Args:
        browsers: All browsers, at least one.
        target: What the call needs.
        last: The browser in which the client last used the plugin.
        now: The time, in seconds.
        ranks: If it does not matter which takes the call: how many calls run in each browser, and
            how many have ended.
    """
    first = browsers[0].number
    if target.tab_id is not None:
        named = browser_of(target.tab_id) - first
        return named if 0 <= named < len(browsers) else 0  # whose error lists the plugin's tabs
    gaps = [browser.tabs.why_disconnected(now) for browser in browsers]
    own = _choose_own(browsers, target, gaps)
    if own is not None:
        return own
    if last is not None and (isinstance(gaps[last], Wait) or _has_tab(browsers[last], target)):
        return last
    for gap in gaps:
        if isinstance(gap, Wait) and ranks is None:
            return gap  # it may have the tab; another's would be a guess
    connected = [index for index, gap in enumerate(gaps) if gap is None]
    ready = [index for index in connected if _ready(browsers[index], target)]
    some = ready or [index for index in connected if _has_tab(browsers[index], target)]
    if not some:
        return connected[0] if connected else 0  # whose error says that there is no tab
    if len(some) == 1:
        return some[0]
    if ranks is not None:
        return min(some, key=ranks.__getitem__)
    find = _ready if ready else _documents
    in_front = _in_front({index: find(browsers[index], target) for index in some})
    if in_front is not None:
        return in_front
    places = {
        browsers[index].name: {d.tab_id: d.title for d in _documents(browsers[index], target)}
        for index in some
    }
    return failures.several_browsers(f"plugin {target.plugin!r}", places)


def _choose_own(
    browsers: Sequence[Browser], target: Target, gaps: Sequence[Wait | ChainError | None]
) -> int | Wait | None:
    """Choose the browser of a tab that the client opened; None if none of these is for the call."""
    owners, first = browsers[0].tabs.owners, browsers[0].number  # they are those of all browsers
    for tab in owners.of(target.client) if owners else ():
        index = browser_of(tab) - first
        gap = gaps[index]
        if isinstance(gap, Wait):
            return gap  # whether the tab has the plugin is not known
        if _has_tab(browsers[index], replace(target, tab_id=tab)):
            return index
    elsewhere = owners.with_purpose(target.client, target.purpose)
    return browser_of(elsewhere[0]) - first if elsewhere else None  # its error names the tab


def choose_page(
    pages: Sequence[DocumentState],
    target: Target,
    owners: TabOwners,
    names: Mapping[int, str],
    preferred: int | None,
) -> DocumentState | ChainError:
    """Choose the page for a call of a tool that pages register themselves.

    The named tab's. Else, of the tabs that this client opened for itself, the one that was used
    last; if it has used the tool in any of these, it stays there. Else, of the user's tabs, the
    first in the only browser that has one; or in the preferred browser; or in the only browser
    whose focused tab has the tool.

    Args:
        pages: The pages that have the tool, in all browsers.
        target: What the call needs.
        owners: Which tabs belong to which clients.
        names: The names of the browsers, by the number that their tabs' numbers begin with.
        preferred: That number of the browser that the client used last, or of interchangeable
            ones, of the least busy.
    """
    what = f"tool {target.page_tool!r}"
    by_tab = {page.tab_id: page for page in by_preference(pages)}
    usable = [by_tab[tab] for tab in owners.usable(target.client, [*by_tab], target.purpose)]
    if target.tab_id is not None:
        if not owners.may_name(target.client, target.tab_id):
            return failures.others_tab(what, target.tab_id)
        titles = {page.tab_id: page.title for page in usable}
        return by_tab.get(target.tab_id) or failures.wrong_tab(what, target.tab_id, titles)
    if not usable:
        return failures.page_tool_gone()
    places = {number: _numbered(usable, number) for number in sorted(names)}
    places = {number: found for number, found in places.items() if found}
    if len(places) == 1 or owners.has_opened(target.client, usable[0].tab_id):
        return usable[0]
    chosen = preferred if preferred in places else _in_front(places)
    if chosen is not None:
        return places[chosen][0]
    titles_of = {
        names[number]: {page.tab_id: page.title for page in found}
        for number, found in places.items()
    }
    return failures.several_browsers(what, titles_of)


def choose_for_new(
    names: Sequence[str],
    named: str | None,
    preferred: int | None,
    gone: Collection[int] = (),
) -> int | CallRefusedError:
    """Choose the browser for a new tab, by its index.

    The named one; else the preferred one; else the only one. One that is gone counts only if it is
    named, or if all are.

    Args:
        names: The names of the browsers.
        named: The name that the client asks for.
        preferred: The browser that the client used last, for any plugin, or of interchangeable
            ones, the least busy.
        gone: The browsers that are not there, and that no call brings back.
    """
    if named is not None:
        return names.index(named) if named in names else failures.which_browser(names, named)
    there = [index for index in range(len(names)) if index not in gone]
    if not there:
        return preferred or 0  # whose error says that it is not connected
    if preferred in there:
        return preferred
    if len(there) == 1:
        return there[0]
    return failures.which_browser([names[index] for index in there])


def renumbered(snapshot: Snapshot, number: int) -> Snapshot:
    """Return what a browser reported, with its tabs numbered among those of all browsers."""
    if number == 0:
        return snapshot
    base = numbers_of(number).start
    return snapshot.model_copy(
        update={
            "tab_ids": [base + tab_id for tab_id in snapshot.tab_ids],
            "crashed": [base + tab_id for tab_id in snapshot.crashed],
            "documents": [
                each.model_copy(update={"tab_id": base + each.tab_id})
                for each in snapshot.documents
            ],
            "loading": [
                each.model_copy(update={"tab_id": base + each.tab_id}) for each in snapshot.loading
            ],
        }
    )


def _documents(browser: Browser, target: Target) -> list[DocumentState]:
    documents, _ = browser.tabs.usable(target)
    return [each for each in documents if _is_wanted(each, target)]


def _ready(browser: Browser, target: Target) -> list[DocumentState]:
    documents = _documents(browser, target)
    return [each for each in documents if each.plugins[target.plugin].readiness == "ready"]


def _has_tab(browser: Browser, target: Target) -> bool:
    _, loading = browser.tabs.usable(target)
    return bool(_documents(browser, target)) or any(_is_wanted(each, target) for each in loading)


def _is_wanted(tab: DocumentState | LoadingTab, target: Target) -> bool:
    """Return whether a tab is the one that is named, if one is, and of the instance."""
    return target.tab_id in (None, tab.tab_id) and (
        target.instance is None or target.instance.has(tab.url)
    )


def _numbered(pages: Sequence[DocumentState], number: int) -> list[DocumentState]:
    return [page for page in pages if browser_of(page.tab_id) == number]


def _in_front(found: Mapping[int, Sequence[DocumentState]]) -> int | None:
    """Return the only browser that has one of its documents in the focused tab."""
    focused = [
        browser
        for browser, documents in found.items()
        if any(each.active and each.focused for each in documents)
    ]
    return focused[0] if len(focused) == 1 else None
