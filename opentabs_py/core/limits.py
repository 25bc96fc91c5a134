"""The limits of a call: how long it may take, by two timers, and how long its messages may be."""

from dataclasses import dataclass
from math import inf
from typing import Final, Literal

Timer = Literal["idle", "ceiling"]

# What users get who set nothing.
IDLE: Final = 30.0  # s
CEILING: Final = 300.0  # s
MESSAGE_LIMIT: Final = 64 * 1024 * 1024  # characters of JSON

# If the process was suspended or busy past a deadline, what would postpone it may be waiting to be
# read. A timer that fires more than LATE seconds late spares the call for CATCH_UP seconds: enough
# to read it, and for an extension to reconnect and resend what was not acknowledged.
LATE: Final = 0.25
CATCH_UP: Final = 1.0

_ENVELOPE: Final = 1024 * 1024  # bytes of a message besides its input or result


def longest_body(message_limit: int) -> int:
    """Return how long a message that contains an input or a result may be, in bytes.

    JSON may write a character in six bytes (one beyond U+FFFF in twelve, but no text consists of
    those). Whoever reads the message enforces the actual limit.

    Args:
        message_limit: The longest input or result, in characters of JSON.
    """
    return 6 * message_limit + _ENVELOPE


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a call may take, in seconds.

    Attributes:
        idle: Silence that ends a call; every progress report restarts it.
        ceiling: The longest a call may take, whatever it reports.

    Raises:
        ValueError: One is negative, or not a number.
    """

    idle: float = IDLE
    ceiling: float = CEILING

    def __post_init__(self) -> None:
        if not (self.idle >= 0 and self.ceiling >= 0):
            raise ValueError(f"Limits are in seconds, and not negative: {self}")

    @property
    def client_timeout(self) -> float:
        """Seconds that a client has to wait, so that these limits end a call before it does.

        For this package's own use.
        """
        return self.ceiling + 10.0  # for the rest of the call besides the tool


@dataclass(slots=True)
class Timers:
    """The timers of one call, in seconds on any steady clock.

    Attributes:
        started: When the call was sent to its tool.
        heard: When the idle timer last restarted.
        reports: How often it has restarted.
    """

    limits: Limits
    started: float
    heard: float
    reports: int = 0
    _spared_until: float = -inf

    @classmethod
    def start(cls, limits: Limits, now: float) -> "Timers":
        """Start both timers."""
        return cls(limits, started=now, heard=now)

    def restart_idle(self, now: float, reports: int = 1) -> None:
        """Restart the idle timer, for this many reports."""
        self.heard = now
        self.reports += reports

    def next(self) -> tuple[float, Timer]:
        """Return when the first of them ends the call, and which one that is."""
        idle, ceiling = self.heard + self.limits.idle, self.started + self.limits.ceiling
        return (idle, "idle") if idle < ceiling else (ceiling, "ceiling")

    def deadline(self, *, other: float = inf) -> float:
        """Return when the call ends, by a timer or at another time."""
        return max(min(self.next()[0], other), self._spared_until)

    def spare(self, now: float, deadline: float) -> None:
        """Postpone a deadline that was noticed too late."""
        if now - deadline > LATE:
            self._spared_until = now + CATCH_UP

    def left(self, now: float) -> Limits:
        """Return how much of each limit is left."""
        return Limits(
            idle=max(0.0, self.limits.idle - (now - self.heard)),
            ceiling=max(0.0, self.limits.ceiling - (now - self.started)),
        )
