"""Choose the tab that serves a plugin."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from opentabs_py.core import failures
from opentabs_py.core.protocol import DocumentState, LoadingTab, PluginState
from opentabs_py.core.sites.instances import Instance
from opentabs_py.core.tabs.owners import SessionKey, TabOwners
from opentabs_py.errors import ChainError

PluginStatus = Literal["closed", "unavailable", "ready"]
"""Whether any tab can run a plugin's tools; each document's answer is its `readiness`."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which of a plugin's tabs a call may use.

    Attributes:
        plugin: The plugin's name.
        patterns: Match patterns of the plugin, or of the instance, for the error when no tab is
            open.
        tab_id: The only tab that may be used.
        instance: The instance of the plugin's site to use, if there are several.
        client: The session of the client that calls, which may have tabs of its own.
        document_id: The only document that may be used, in the tab of `tab_id`.
        page_tool: The tool's name, if pages register it themselves.
    """

    plugin: str
    patterns: Sequence[str] = ()
    tab_id: int | None = None
    instance: Instance | None = None
    client: SessionKey | None = None
    document_id: str | None = None
    page_tool: str | None = None

    @property
    def purpose(self) -> str:
        """What a tab of the client must have been opened or used for; see `TabOwners`."""
        return self.page_tool or self.plugin


@dataclass(frozen=True, slots=True)
class Wait:
    """No answer yet: ask again on a change, or raise `error` at `until`."""

    until: float
    error: ChainError


@dataclass(frozen=True, slots=True)
class _Injection:
    """When a plugin was injected into a document, and whether it was last reported pending."""

    at: float
    is_pending: bool


@dataclass(slots=True)
class Tabs:
    """The documents of one browser, as last reported.

    Args:
        grace: Seconds that a call waits for a plugin to get ready after it was injected into
            a document, or for the extension to reconnect.
        has_browser: Whether there is a browser from which it could reconnect.
        advice: What the user should do so that it connects, or so that it can be driven; empty if
            nothing is known.
        lacks_debugging: Whether it cannot be driven, which hands need, though it may be connected.
        owners: Which tabs, of all browsers, belong to which clients.
        held_until: Before this time, no call is placed in the browser.
        refused: Why the browser does not run a plugin on some of its sites, by plugin.
    """

    grace: float = 5.0
    has_browser: bool = True
    advice: str = ""
    lacks_debugging: bool = False
    owners: TabOwners = field(default_factory=TabOwners)
    held_until: float = float("-inf")
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    connected: bool = False
    documents: Sequence[DocumentState] = ()
    loading: Sequence[LoadingTab] = ()
    _injections: dict[tuple[str, str], _Injection] = field(
        default_factory=dict[tuple[str, str], _Injection]
    )
    _connection_since: float = float("-inf")
    _loading_since: dict[int, float] = field(default_factory=dict[int, float])

    @property
    def user_action(self) -> str:
        """What the user should do now; empty if nothing, or if that is not known."""
        return "" if self.connected and not self.lacks_debugging else self.advice

    def update(
        self,
        documents: Sequence[DocumentState],
        now: float,
        *,
        loading: Sequence[LoadingTab] = (),
    ) -> None:
        """Replace the whole state; documents that are not listed are gone."""
        self.documents = documents
        self.loading = loading
        # A tab that never finishes must not use up the grace of others.
        self._loading_since = {
            tab.tab_id: self._loading_since.get(tab.tab_id, now) for tab in loading
        }
        self._injections = {
            (document.document_id, plugin): self._injection_of(
                document.document_id, plugin, state, now
            )
            for document in documents
            for plugin, state in document.plugins.items()
        }

    def _injection_of(
        self, document_id: str, plugin: str, state: PluginState, now: float
    ) -> _Injection:
        is_pending = state.readiness == "pending"
        known = self._injections.get((document_id, plugin))
        if known is None or (is_pending and not known.is_pending):  # a newer adapter was injected
            return _Injection(now, is_pending)
        return _Injection(known.at, is_pending)

    def connection_changed(self, *, connected: bool, now: float) -> None:
        """Handle the link coming up, or going down, which clears the documents."""
        self.connected = connected
        self._connection_since = now
        if not connected:
            self.documents = self.loading = ()
            self._loading_since = {}

    def serving(self, plugin: str) -> list[DocumentState]:
        """Return the plugin's documents, the one a call would use first."""
        return by_preference([d for d in self.documents if plugin in d.plugins])

    def usable(self, target: Target) -> tuple[list[DocumentState], list[LoadingTab]]:
        """Return the documents and loading tabs of a plugin that a client's calls may use.

        If the client has opened a tab for the plugin, its calls stay in its own tabs.
        """
        documents = self.serving(target.plugin)
        loading = [tab for tab in self.loading if target.plugin in tab.plugins]
        if not self.owners:
            return documents, loading
        tabs = [*(each.tab_id for each in documents), *(each.tab_id for each in loading)]
        if target.tab_id is None:
            allowed = self.owners.usable(target.client, tabs, target.purpose)
        else:
            allowed = [tab for tab in tabs if self.owners.may_name(target.client, tab)]
        ranks = {tab: rank for rank, tab in enumerate(allowed)}
        return (
            sorted((d for d in documents if d.tab_id in ranks), key=lambda d: ranks[d.tab_id]),
            [tab for tab in loading if tab.tab_id in ranks],
        )

    def status(self, plugin: str) -> PluginStatus:
        """Return the status of a plugin across all its tabs."""
        mine = self.serving(plugin)
        if any(d.plugins[plugin].readiness == "ready" for d in mine):
            return "ready"
        return "unavailable" if mine else "closed"

    def why_disconnected(self, now: float) -> Wait | ChainError | None:
        """Return None while the extension is connected; otherwise, wait for it or fail."""
        if self.connected:
            return None
        until = self._connection_since + self.grace
        error = failures.not_connected(self.advice)
        return Wait(until, error) if self.has_browser and now < until else error

    def choose(self, target: Target, now: float) -> DocumentState | Wait | ChainError:
        """Choose the document for a call.

        The active tab of the focused window wins. A document in which the plugin is not ready
        is waited for if the plugin was injected recently; otherwise the next one is tried. A
        `tab_id` is used or refused, never replaced. If the plugin has several instances, only
        the tabs of the named one count. A client that has opened a tab for the plugin stays in its
        own tabs, the most recently used one first; others' tabs are never used. A call that is
        bound to a document fails as soon as its tab shows another one.
        """
        plugin, tab_id, instance = target.plugin, target.tab_id, target.instance
        if (gap := self.why_disconnected(now)) is not None:
            return gap
        if target.document_id is not None:
            return self._choose_document(target, now)
        mine, coming = self.usable(target)
        if tab_id is not None:
            if not self.owners.may_name(target.client, tab_id):
                return failures.others_tab(f"plugin {plugin!r}", tab_id)
            named = [d for d in mine if d.tab_id == tab_id]
            coming = [tab for tab in coming if tab.tab_id == tab_id]
            if not named and not coming:
                return failures.wrong_tab(
                    f"plugin {plugin!r}", tab_id, {d.tab_id: d.title for d in mine}
                )
            mine = named
        if instance is not None:
            elsewhere = [d.url for d in mine] + [tab.url for tab in coming]
            mine = [d for d in mine if instance.has(d.url)]
            coming = [tab for tab in coming if instance.has(tab.url)]
            if tab_id is not None and not mine and not coming:
                theirs = instance.among.instance_at(elsewhere[0])
                return failures.other_instance(plugin, tab_id, instance.name, theirs)
        if not mine and coming:
            latest = max(coming, key=lambda tab: self._loading_since[tab.tab_id])
            reason = "the page is loading, or its site cannot be reached"
            error = failures.not_ready_yet(plugin, latest.url, reason)
            return self._when_loaded(latest.tab_id, error, now)
        if not mine:
            return self._no_document(target)
        for document in mine:
            found = self._when_ready(document, plugin, now)
            if not isinstance(found, ChainError):
                return found
        return self._when_ready(mine[0], plugin, now)

    def _no_document(self, target: Target) -> ChainError:
        """Return the error for a call that no tab can take."""
        instance = None if target.instance is None else target.instance.name
        own = self.owners.with_purpose(target.client, target.purpose)
        if own and target.tab_id is None:
            return failures.own_tab_left(target.plugin, own[0], instance)
        refused = self.refused.get(target.plugin, "")
        return failures.no_tab(target.plugin, target.patterns, instance, refused=refused)

    def _choose_document(self, target: Target, now: float) -> DocumentState | Wait | ChainError:
        for document in self.documents:
            if document.document_id == target.document_id and target.plugin in document.plugins:
                return self._when_ready(document, target.plugin, now)
        # It may be about to reconnect, unless its tab shows another.
        coming = [tab.tab_id for tab in self.loading if tab.tab_id == target.tab_id]
        error = failures.page_tool_gone()
        if not coming or any(document.tab_id == target.tab_id for document in self.documents):
            return error
        return self._when_loaded(coming[0], error, now)

    def _when_loaded(self, tab_id: int, error: ChainError, now: float) -> Wait | ChainError:
        until = self._loading_since[tab_id] + self.grace
        return Wait(until, error) if now < until else error

    def _when_ready(
        self, document: DocumentState, plugin: str, now: float
    ) -> DocumentState | Wait | ChainError:
        state = document.plugins[plugin]
        if state.readiness == "ready":
            return document
        error = _not_ready(plugin, document.url, state)
        until = self._injections[document.document_id, plugin].at + self.grace
        return Wait(until, error) if now < until else error


def by_preference(documents: Iterable[DocumentState]) -> list[DocumentState]:
    """Return documents in the order in which calls prefer them."""
    return sorted(documents, key=lambda d: (not (d.focused and d.active), not d.active, -d.tab_id))


def ready_by_plugin(documents: Iterable[DocumentState]) -> Counter[str]:
    """Return in how many documents each plugin works now."""
    return Counter(
        name
        for document in documents
        for name, state in document.plugins.items()
        if state.readiness == "ready"
    )


def _not_ready(plugin: str, url: str, state: PluginState) -> ChainError:
    """Return the error for a document in which a plugin is not ready."""
    if state.readiness == "pending":
        reason = state.reason or "isReady() has not answered yet"
        return failures.not_ready_yet(plugin, url, reason)
    if state.readiness == "missing":
        return failures.does_not_run(plugin, url, state.reason or "its adapter is not there")
    return failures.not_ready(plugin, url, state.reason or "isReady() is not true")
