"""Client-owned tabs, by the client that opened them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

SessionKey: TypeAlias = str  # identifies the session of an MCP client


class TabOwners:
    """The tabs that clients have opened; false if there are none. All others belong to the user.

    A client is known by its session. A tab that was opened without one belongs to no client in
    particular, and only calls that name it use it.

    A client's tab has purposes: the plugins that serve the page it was opened with, and the
    plugins and pages' own tools that the client's calls have used in it since.
    """

    def __init__(self) -> None:
        self._owners: dict[int, SessionKey | None] = {}  # the most recently used last
        self._purposes: defaultdict[int, set[str]] = defaultdict(set)
        self._leaving: set[int] = set()
        self._reported: set[int] = set()  # as open, since it was opened

    def __bool__(self) -> bool:
        return bool(self._owners)

    def add(self, tab_id: int, client: SessionKey | None, plugins: Iterable[str] = ()) -> None:
        """Record that a client opened a tab, with a page that these plugins serve."""
        self._owners[tab_id] = client
        self._purposes[tab_id] = {*plugins}

    def remove(self, tab_id: int) -> None:
        """Forget a tab, which was closed or is now the user's."""
        self._owners.pop(tab_id, None)
        self._purposes.pop(tab_id, None)
        self._leaving.discard(tab_id)
        self._reported.discard(tab_id)

    def use(self, tab_id: int, purpose: str) -> None:
        """Record that a call uses a plugin, or a page's own tool, in a tab."""
        if tab_id in self._owners:
            self._owners[tab_id] = self._owners.pop(tab_id)
            self._purposes[tab_id].add(purpose)

    def of(self, client: SessionKey | None) -> list[int]:
        """Return the tabs of a client, the most recently opened or used one first."""
        if client is None:
            return []
        return [tab for tab, owner in reversed(self._owners.items()) if owner == client]

    def with_purpose(self, client: SessionKey | None, purpose: str) -> list[int]:
        """Return the tabs of a client that have a purpose, whatever they show now."""
        return [tab for tab in self.of(client) if purpose in self._purposes[tab]]

    def every(self) -> list[int]:
        """Return the tabs of all clients."""
        return [*self._owners]

    def of_sessions(self) -> list[int]:
        """Return the tabs of clients with a session, with whose end they are closed."""
        return [tab for tab, owner in self._owners.items() if owner is not None]

    def has_opened(self, client: SessionKey | None, tab_id: int) -> bool:
        """Return whether a client opened a tab; None stands for all clients without a session."""
        return (
            tab_id in self._owners
            and tab_id not in self._leaving
            and self._owners[tab_id] == client
        )

    def may_name(self, client: SessionKey | None, tab_id: int) -> bool:
        """Return whether a call of a client may use a tab if it names it.

        A call without a session may come from the user, who may use every tab.
        """
        if tab_id in self._leaving:
            return False
        return client is None or self._owners.get(tab_id) in (None, client)

    def usable(
        self, client: SessionKey | None, tabs: Sequence[int], purpose: str | None = None
    ) -> list[int]:
        """Return those of some tabs that a call of a client may use without naming one.

        If the client opened any, it stays in those, the most recently used one first. Otherwise,
        it may use those that no client opened, in their order; but not if it has one for the
        purpose, which shows something else now: another account may be signed in there.

        Args:
            client: The client's session.
            tabs: The tabs in which the call could run.
            purpose: The plugin, or the page's own tool; None if any tab will do.
        """
        own = [tab for tab in self.of(client) if tab in tabs]
        if own or (purpose is not None and self.with_purpose(client, purpose)):
            return own
        return [tab for tab in tabs if tab not in self._owners]

    def abandon(self, tab_id: int) -> None:
        """Keep all calls out of a tab until it is closed."""
        self._owners[tab_id] = None
        self._leaving.add(tab_id)

    def reported(self, tabs: range, open_tabs: Collection[int]) -> None:
        """Handle a browser's report of its open tabs: forget those that have been closed.

        A tab that was never reported is kept: the report may be older than the tab.

        Args:
            tabs: The numbers that its tabs can have.
            open_tabs: The numbers of those that are open.
        """
        for tab in [each for each in self._owners if each in tabs]:
            if tab in open_tabs:
                self._reported.add(tab)
            elif tab in self._reported:
                self.remove(tab)

    def reconnected(self, tabs: range, open_tabs: Collection[int]) -> list[int]:
        """Handle a browser that reports its tabs again; return those to close.

        Args:
            tabs: The numbers that its tabs can have.
            open_tabs: The numbers of those that are open.
        """
        for tab in [each for each in self._owners if each in tabs and each not in open_tabs]:
            self.remove(tab)
        return [tab for tab in self._leaving if tab in tabs]
