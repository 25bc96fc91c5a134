"""The workers that an endpoint knows."""

import logging
from collections.abc import Callable, Mapping, Sequence

from opentabs_py.core.fleet.liveness import SILENT_FOR, Liveness
from opentabs_py.core.fleet.messages import (
    Announcement,
    VersionSkewError,
    read_announcement,
)
from opentabs_py.core.fleet.routing import conflict, usable
from opentabs_py.errors import ProtocolError

logger = logging.getLogger(__name__)


class Directory:
    """The workers that announce themselves, without those that cannot be used.

    Args:
        labels: The labels that a worker must have.
        version: The version of this package.
        on_change: Called with the run of each worker that is new, has changed, or has gone.

    Attributes:
        refused: Why workers are not used, by their run.
    """

    def __init__(
        self, labels: Mapping[str, str], version: str, on_change: Callable[[str], None]
    ) -> None:
        self._labels = labels
        self._version = version
        self._on_change = on_change
        self._known: dict[str, Announcement] = {}
        self._heard: dict[str, Liveness] = {}
        self.refused: dict[str, str] = {}

    @property
    def all(self) -> Sequence[Announcement]:
        """Every worker that is there, used or not."""
        return [*self._known.values()]

    @property
    def usable(self) -> Sequence[Announcement]:
        """The workers that take calls."""
        return [
            each
            for each in self._known.values()
            if usable(each, self._labels) and each.instance not in self.refused
        ]

    def get(self, instance: str) -> Announcement | None:
        """Return what a worker announced last; None if it is not there."""
        return self._known.get(instance)

    def handle(self, data: bytes, now: float) -> None:
        """Handle what a worker announces."""
        try:
            worker = read_announcement(data, opentabs=self._version)
        except VersionSkewError as skew:
            self._refuse(skew.instance, str(skew))
            return
        except ProtocolError as error:
            self._refuse("", str(error))
            return
        if worker.state in ("starting", "leaving"):
            if worker.state == "leaving":
                self.remove(worker.instance)
            return
        self._heard.setdefault(worker.instance, Liveness(now)).handle_heard(now)
        self._known[worker.instance] = worker
        self._check_conflicts()
        self._on_change(worker.instance)

    def remove(self, instance: str) -> None:
        """Handle that a worker has gone."""
        if self._known.pop(instance, None) is not None:
            self._heard.pop(instance, None)
            self.refused.pop(instance, None)
            self._check_conflicts()
            self._on_change(instance)

    def handle_relinked(self, now: float) -> None:
        """Record that the connection was interrupted and is back."""
        for liveness in self._heard.values():
            liveness.handle_relinked(now)

    def remove_silent(self, now: float) -> None:
        """Remove the workers that have not announced themselves for too long."""
        for instance, liveness in [*self._heard.items()]:
            if now >= liveness.gone_at() + SILENT_FOR:  # an idle one says little
                self.remove(instance)

    def use(self, instance: str) -> None:
        """Put a worker behind all others, because a call was sent to it."""
        worker = self._known.pop(instance, None)
        if worker is not None:
            self._known[instance] = worker

    def _check_conflicts(self) -> None:
        for worker in self._known.values():
            other = conflict(worker, self.all)
            if other is None:
                self.refused.pop(worker.instance, None)
            else:
                self._refuse(
                    worker.instance,
                    f"The worker {worker.name} on {worker.host} (pid {worker.pid}) has the name or "
                    f"the number of {other.name} on {other.host} (pid {other.pid}), which was "
                    "there before. It gets no calls; restart it, with another --name.",
                )

    def _refuse(self, instance: str, why: str) -> None:
        if self.refused.get(instance) != why:
            self.refused[instance] = why
            logger.warning("%s", why)
