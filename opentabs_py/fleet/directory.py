"""The workers that an endpoint knows."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from opentabs_py.core.fleet.claims import Claims, claims_of, conflict
from opentabs_py.core.fleet.liveness import SILENT_FOR, Liveness
from opentabs_py.core.fleet.messages import Announcement, VersionSkewError, read_announcement
from opentabs_py.core.text import one_line
from opentabs_py.errors import ProtocolError

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    worker: Announcement
    data: bytes  # what it announced last
    liveness: Liveness


class Directory:
    """The workers that announce themselves, and which of them can be used.

    An idle worker only repeats itself, so an announcement is not read again if it is the same.

    Args:
        labels: The labels that a worker must have.
        on_change: Called with the run of each worker that has announced itself, is gone, or becomes
            usable or unusable.
        on_conflict: Called with a worker because of which another one is refused: if it is no
            longer there, for example because the other is its next run, that should be found out.

    Attributes:
        refused: Why workers are not used, by their run; "" if that could not be read.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        on_change: Callable[[str], None],
        on_conflict: Callable[[Announcement], None] = lambda _: None,
    ) -> None:
        self._labels = labels
        self._on_change = on_change
        self._on_conflict = on_conflict
        self._known: dict[str, _Known] = {}
        self._repeated: dict[bytes, str] = {}  # runs, by what they announced last
        self._claims = Claims()
        # When those whose announcements cannot be read were heard last; "" is any whose run is
        # unknown.
        self._unreadable: dict[str, float] = {}
        self.refused: dict[str, str] = {}

    @property
    def all(self) -> Sequence[Announcement]:
        """Every worker that is there, used or not."""
        return [each.worker for each in self._known.values()]

    @property
    def usable(self) -> Sequence[Announcement]:
        """The workers that take calls."""
        return [worker for worker in self.all if self.uses(worker)]

    def get(self, instance: str) -> Announcement | None:
        """Return what a worker announced last; None if it is not there."""
        known = self._known.get(instance)
        return None if known is None else known.worker

    def uses(self, worker: Announcement) -> bool:
        """Return whether a worker takes calls, has the labels, and is not refused."""
        return (
            worker.state == "serving"
            and worker.instance not in self.refused
            and self._labels.items() <= worker.labels.items()
        )

    def handle(self, data: bytes, now: float) -> None:
        """Handle what a worker announces."""
        instance = self._repeated.get(data)
        if instance is not None:
            self._known[instance].liveness.handle_heard(now)
            self._on_change(instance)
            return
        try:
            worker = read_announcement(data)
        except ProtocolError as error:
            instance = error.instance if isinstance(error, VersionSkewError) else ""
            self._unreadable[instance] = now
            self._refuse(instance, str(error))
        else:
            if worker.state == "leaving":
                self._note(worker.instance, "has left")
                self.remove(worker.instance)
            elif worker.state != "starting":
                self._put(worker, data, now)

    def remove(self, instance: str) -> None:
        """Remove a worker that is gone."""
        known = self._known.pop(instance, None)
        if known is not None:
            del self._repeated[known.data]
            self.refused.pop(instance, None)
            self._on_change(instance)
            self._claims.remove(known.worker)
            self._check(self._claims.rivals(known.worker))

    def handle_relinked(self, now: float) -> None:
        """Record that the connection was interrupted and is back."""
        for known in self._known.values():
            known.liveness.handle_relinked(now)

    def remove_silent(self, now: float) -> None:
        """Remove the workers that have not announced themselves for too long."""
        for instance, known in [*self._known.items()]:
            if now >= known.liveness.gone_at() + SILENT_FOR:  # an idle one says little
                self._note(instance, "is gone")
                self.remove(instance)
        for instance, heard in [*self._unreadable.items()]:
            if now >= heard + 2 * SILENT_FOR:
                del self._unreadable[instance]
                self.refused.pop(instance, None)

    def _put(self, worker: Announcement, data: bytes, now: float) -> None:
        before = self._known.get(worker.instance)
        if before is not None and claims_of(before.worker) != claims_of(worker):
            self.remove(worker.instance)
            before = None
        if before is None:
            self._known[worker.instance] = _Known(worker, data, Liveness(now))
            self._note(worker.instance, "is there")
            self._claims.put(worker)
            self._check(self._claims.rivals(worker))
        else:
            del self._repeated[before.data]
            before.worker, before.data = worker, data
            before.liveness.handle_heard(now)
        self._repeated[data] = worker.instance
        self._on_change(worker.instance)

    def _note(self, instance: str, what: str) -> None:
        if (worker := self.get(instance)) is not None:
            which = worker.name, worker.host, worker.pid
            logger.info("The worker %s on %s (pid %d) %s", *which, what)

    def _check(self, rivals: Sequence[Announcement]) -> None:
        """Refuse those of some workers that conflict with others, and no longer the others."""
        for worker in rivals:
            other = conflict(worker, self._claims.rivals(worker))
            if (other is None) == (worker.instance not in self.refused):
                continue
            if other is None:
                del self.refused[worker.instance]
            else:
                self._refuse(
                    worker.instance,
                    f"The worker {worker.name} on {worker.host} (pid {worker.pid}) has the name or "
                    f"the number of {other.name} on {other.host} (pid {other.pid}), which was "
                    "there before. It gets no calls until that one has exited; if that one is to "
                    "stay, restart it with another --name.",
                )
                self._on_conflict(other)
            self._on_change(worker.instance)

    def _refuse(self, instance: str, why: str) -> None:
        why = one_line(why)  # others wrote some of it
        if instance not in self.refused:  # several may be refused as "", each with another text
            logger.warning("%s", why)
        self.refused[instance] = why
