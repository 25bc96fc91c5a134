"""The tabs that an endpoint's clients have opened for themselves, in its workers."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.tabs.owners import SessionKey


class OwnRemoteTabs:
    """The tabs that clients have opened for themselves, and where."""

    def __init__(self) -> None:
        self._tabs: dict[str, dict[int, tuple[Announcement, AbstractSet[str]]]] = {}

    def add(
        self, client: SessionKey, tab: int, worker: Announcement, plugins: AbstractSet[str]
    ) -> bool:
        """Record a tab; return whether it is the client's first of its worker."""
        is_first = all(worker.instance != each.instance for each in self.workers(client))
        self._tabs.setdefault(client, {})[tab] = (worker, plugins)
        return is_first

    def of(self, client: SessionKey | None, owner: str) -> tuple[int, ...]:
        """Return a client's tabs of a plugin, the most recently opened one first."""
        tabs = self._tabs.get(client or "", {})
        return tuple(tab for tab, (_, plugins) in reversed(tabs.items()) if owner in plugins)

    def workers(self, client: SessionKey | None) -> Sequence[Announcement]:
        """Return the workers in which a client has tabs, that of the latest first."""
        tabs = self._tabs.get(client or "", {})
        by_instance = {worker.instance: worker for worker, _ in reversed(tabs.values())}
        return [*by_instance.values()]

    def remove(self, client: SessionKey | None, tab: int) -> Announcement | None:
        """Forget a closed tab; return its worker if it was the client's last one there."""
        worker, _ = self._tabs.get(client or "", {}).pop(tab, (None, ()))
        is_left = worker is None or any(
            worker.instance == each.instance for each in self.workers(client)
        )
        return None if is_left else worker

    def discard(self, client: SessionKey) -> Sequence[Announcement]:
        """Forget a client, and return the workers in which it had tabs."""
        workers = self.workers(client)
        self._tabs.pop(client, None)
        return workers

    def forget(self, instance: str) -> None:
        """Forget the tabs of a worker that is gone."""
        for client, tabs in [*self._tabs.items()]:
            kept = {tab: at for tab, at in tabs.items() if at[0].instance != instance}
            if kept:
                self._tabs[client] = kept
            else:
                del self._tabs[client]
