"""The identity of a worker, and its announcement."""

import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from opentabs_py.calling.clock import wall_clock
from opentabs_py.core.fleet.messages import FLEET_VERSION, Announcement, ServedOwner, State
from opentabs_py.version import __version__


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is.

    Attributes:
        name: Its name in the fleet.
        number: That of its first browser among those of the fleet.
        labels: What endpoints may choose it by.
        max_calls: How many calls may run in it at once.
        instance: This run of it.
        started: When it started, in seconds since the epoch.
    """

    name: str
    number: int = 0
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    max_calls: int = 8
    instance: str = field(default_factory=lambda: secrets.token_hex(8))
    started: float = field(default_factory=wall_clock)

    def announce(
        self,
        state: State,
        browsers: Sequence[str],
        *,
        running: Mapping[str, int] = MappingProxyType({}),
        served: Mapping[str, ServedOwner] = MappingProxyType({}),
        counts: Mapping[str, int] = MappingProxyType({}),
    ) -> Announcement:
        """Return what it announces.

        Args:
            state: Whether it takes calls.
            browsers: The names of its browsers.
            running: The calls that run, by endpoint.
            served: Its plugins and modules.
            counts: Its `calls`, `failures`, `restarts` and `memory`, as in an announcement.
        """
        return Announcement(
            version=FLEET_VERSION,
            opentabs=__version__,
            name=self.name,
            instance=self.instance,
            host=socket.gethostname() or "localhost",
            pid=os.getpid(),
            started=self.started,
            state=state,
            number=self.number,
            browsers=[*browsers],
            labels=dict(self.labels),
            max_calls=self.max_calls,
            running=dict(running),
            served=dict(served),
            **counts,
        )
