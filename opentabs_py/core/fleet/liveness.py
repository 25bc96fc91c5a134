"""Detect that the other side of a link is gone.

NATS reports at once that no process listens to a subject, for example because one was killed. It
says so too while the other side only reconnects, which usually takes less than a second; and it
says nothing if the other side's network is cut. So neither a missing listener nor silence counts
before it has lasted. While this process's connection is down, nothing counts; nor while it is
suspended, because the others may be suspended with it.
"""

from math import inf
from typing import Final

BEAT_EVERY: Final = 0.5  # s; how often an endpoint says to a worker that it is there
ABSENT_FOR: Final = 1.2  # s without a listener, after which a worker is gone
SILENT_FOR: Final = 4.0  # s without a word, after which the other side is gone
UNLINKED_FOR: Final = 30.0  # s without NATS, after which neither side waits for the other
BACK_WITHIN: Final = 5.0  # s after this process reconnects, in which the others may reconnect too
SUSPENDED_FOR: Final = 2.0  # s that a timer is late, after which this process was suspended


class Liveness:
    """Decides whether one other process is still there. Times are seconds on any one steady clock.

    Args:
        now: The time, at which it is there.
    """

    def __init__(self, now: float) -> None:
        self._heard = now
        self._absent_since = inf
        self._spared_until = -inf

    def handle_heard(self, now: float) -> None:
        """Record that it said something."""
        self._heard = now
        self._absent_since = inf

    def handle_absent(self, now: float) -> None:
        """Record that no process listened where one should."""
        self._absent_since = min(self._absent_since, now)

    def handle_relinked(self, now: float) -> None:
        """Record that this process is back: its connection was interrupted, or it was suspended."""
        self._heard = now
        self._absent_since = inf
        self._spared_until = now + BACK_WITHIN

    def gone_at(self, *, awaiting: bool = False) -> float:
        """Return when it counts as gone, if nothing is heard until then.

        Args:
            awaiting: Whether something was sent to it that may yet be reported as undelivered. Then
                only silence counts, so that nobody has to guess whether it arrived.
        """
        silent = self._heard + SILENT_FOR
        absent = inf if awaiting else self._absent_since + ABSENT_FOR
        return max(min(silent, absent), self._spared_until)
