"""What an MCP client is sent as progress: increasing, bounded in rate, latest wins.

A tool reports as it likes. The specification (every revision, "Progress") lets a
server send only values that increase with each notification, and asks it to limit
their rate. `ProgressFilter` stands between the two, one for each call.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

MAX_SAFE_INTEGER: Final = 2**53 - 1  # the largest that JavaScript counts exactly
# Values are cut here, far below the largest double, so that there is always a larger one to send.
_LARGEST: Final = 1e300


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """One progress report as it arrives from a page.

    Attributes:
        seq: Its number within the call, from 0.
        progress: How far the tool is; None when it cannot say.
        total: What `progress` will be at the end, where the tool knows.
        message: What the tool is doing, for people.
    """

    seq: Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
    progress: float | None = None
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ProgressNotification:
    """What one `notifications/progress` says, its token aside."""

    progress: float
    total: float | None
    message: str | None


class ProgressFilter:
    """Turns one call's reports into the notifications its client may be sent.

    A token bucket limits them: the first `burst` pass whole, then `rate` a second.
    While reports wait for their turn only the latest of them is kept, and it is
    sent by `finish` at the latest. Costs O(1) per report and holds at most
    `burst + 1` of them.

    Times are seconds of any one clock that does not go back.

    Args:
        burst: How many notifications may be sent at once.
        rate: How many more may be sent per second.
    """

    __slots__ = (
        "_burst",
        "_finished",
        "_measured",
        "_rate",
        "_sent",
        "_tokens",
        "_updated",
        "_waiting",
    )

    def __init__(self, *, burst: int = 20, rate: float = 10.0) -> None:
        if burst < 1:
            raise ValueError(f"burst is {burst}; give at least 1, so that anything can be sent")
        if not (rate > 0 and math.isfinite(rate)):
            raise ValueError(f"rate is {rate}; give a finite number of notifications per second")
        self._burst = burst
        self._rate = rate
        self._tokens = float(burst)
        self._updated = -math.inf
        # All but the last have a token waiting for them; the last may have to wait for one.
        self._waiting: deque[ProgressReport] = deque()
        self._sent: float | None = None
        self._measured = False
        self._finished = False

    def report(self, report: ProgressReport, now: float) -> None:
        """Take in a report; after `finish` it is dropped."""
        if self._finished:
            return
        self._refill(now)
        if self._waiting and len(self._waiting) > self._tokens:
            self._waiting.pop()
        self._waiting.append(report)

    def take(self, now: float) -> list[ProgressNotification]:
        """Give what may be sent now, in order; it counts as sent."""
        self._refill(now)
        ready = min(len(self._waiting), int(self._tokens))
        self._tokens -= ready
        return [self._notification(self._waiting.popleft()) for _ in range(ready)]

    def next_time(self) -> float | None:
        """Give the time at which `take` will have something; None when nothing waits."""
        return self._token_time() if self._waiting else None

    def finish(self, now: float) -> list[ProgressNotification]:
        """Give what is still to be sent before the call's response; after it, nothing ever is.

        The last report is among it whatever the rate, unless it was sent before.
        """
        last = self.take(now)
        last += [self._notification(report) for report in self._waiting]
        self._waiting.clear()
        self._finished = True
        return last

    def _token_time(self) -> float:
        return self._updated + max(0.0, 1.0 - self._tokens) / self._rate

    def _refill(self, now: float) -> None:
        if now < self._updated:
            return
        promised = self._token_time()
        gained = (now - self._updated) * self._rate
        self._tokens = min(float(self._burst), self._tokens + gained)
        if now >= promised:  # rounding must not break what `next_time` said: a shell would spin
            self._tokens = max(1.0, self._tokens)
        self._updated = now

    def _notification(self, report: ProgressReport) -> ProgressNotification:
        total = None
        if report.progress is not None and math.isfinite(report.progress):
            value = max(-_LARGEST, min(report.progress, _LARGEST))
            self._measured = True
            if report.total is not None and math.isfinite(report.total) and report.total > 0:
                total = report.total  # zero of zero would be a division by zero at many a client
        elif self._measured:
            value = -math.inf  # a count would be taken for the tool's own measure
        else:
            value = 1.0 if self._sent is None else self._sent + 1.0
        if self._sent is not None and value <= self._sent:
            value = math.nextafter(self._sent, math.inf)
        self._sent = value
        return ProgressNotification(value, total, report.message)
