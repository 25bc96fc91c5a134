"""Choose the plugins whose tools are listed, where only working ones are."""

from dataclasses import dataclass
from math import inf

from opentabs_py.core.tabs.browsers import JoinedTabs
from opentabs_py.core.tabs.selection import Tabs, Wait

NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(slots=True)
class ListedPlugins:
    """Follows the tabs, but not their every brief change.

    A plugin is listed once it is ready in a tab. From then on, a tab in which it is not ready yet
    counts too, so a page that navigates within its site changes nothing.

    Args:
        rest: Seconds without a change after which the list changes.
        apart: Seconds between two changes of the list.

    Attributes:
        names: The plugins that are listed; another object whenever they change.
    """

    rest: float = 0.25
    apart: float = 1.0  # a client reads the whole list after each change
    names: frozenset[str] = NO_PLUGINS
    _wanted: frozenset[str] = NO_PLUGINS
    _wanted_since: float = -inf
    _changed_at: float = -inf

    def step(self, tabs: Tabs | JoinedTabs, now: float) -> float:
        """Update the list from the tabs; return when to call this again if nothing changes."""
        gap = tabs.why_disconnected(now)
        if isinstance(gap, Wait):
            return gap.until  # the extension is most likely about to report the same tabs again
        return self.follow(NO_PLUGINS if gap is not None else self._find(tabs), now)

    def follow(self, wanted: frozenset[str], now: float) -> float:
        """Handle which plugins work now; return when to do so again, if that does not change."""
        if wanted != self._wanted:
            self._wanted, self._wanted_since = wanted, now
        if wanted == self.names:
            return inf
        due = max(self._wanted_since + self.rest, self._changed_at + self.apart)
        if now < due:
            return due
        self.names, self._changed_at = wanted, now
        return inf

    def _find(self, tabs: Tabs | JoinedTabs) -> frozenset[str]:
        states = [each for document in tabs.documents for each in document.plugins.items()]
        ready = {name for name, state in states if state.readiness == "ready"}
        coming = {name for name, state in states if state.readiness == "pending"}
        coming.update(*(tab.plugins for tab in tabs.loading))
        return frozenset(ready | (coming & self.names))
