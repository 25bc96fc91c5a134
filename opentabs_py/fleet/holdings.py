"""What an endpoint's clients have in its workers, and what ends with them."""

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.tabs.owners import SessionKey


class ClientHoldings:
    """The tabs that clients have opened for themselves, where, and who has something else where.

    That is a stream, or a tab that a Python tool has opened for them in its worker.
    """

    def __init__(self) -> None:
        self._tabs: dict[str, dict[int, tuple[Announcement, AbstractSet[str]]]] = {}
        self._with_others: defaultdict[str, dict[str, Announcement]] = defaultdict(dict)

    def add(
        self, client: SessionKey, tab: int, worker: Announcement, plugins: AbstractSet[str]
    ) -> bool:
        """Record a tab; return whether it is the first that the client has in its worker."""
        is_first = not self._has_any(client, worker)
        self._tabs.setdefault(client, {})[tab] = (worker, plugins)
        return is_first

    def add_other(self, client: SessionKey, worker: Announcement) -> bool:
        """Record that a client has something else; return whether it had nothing in its worker."""
        is_first = not self._has_any(client, worker)
        self._with_others[client][worker.instance] = worker
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
        """Forget a closed tab; return its worker if the client has nothing else there."""
        worker, _ = self._tabs.get(client or "", {}).pop(tab, (None, ()))
        is_left = worker is None or self._has_any(client or "", worker)
        return None if is_left else worker

    def discard(self, client: SessionKey) -> Sequence[Announcement]:
        """Forget a client, and return the workers in which it had anything."""
        workers = {each.instance: each for each in self.workers(client)}
        workers |= self._with_others.pop(client, {})
        self._tabs.pop(client, None)
        return [*workers.values()]

    def forget(self, instance: str) -> None:
        """Forget what is in a worker that is gone."""
        for client, tabs in [*self._tabs.items()]:
            kept = {tab: at for tab, at in tabs.items() if at[0].instance != instance}
            if kept:
                self._tabs[client] = kept
            else:
                del self._tabs[client]
        for client, workers in [*self._with_others.items()]:
            workers.pop(instance, None)
            if not workers:
                del self._with_others[client]

    def _has_any(self, client: SessionKey, worker: Announcement) -> bool:
        with_tabs = {each.instance for each in self.workers(client)}
        return worker.instance in with_tabs | self._with_others.get(client, {}).keys()
