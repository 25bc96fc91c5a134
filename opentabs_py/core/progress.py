"""The progress that an MCP client receives: increasing, rate-limited, latest wins.

A tool reports as it likes. The specification (every revision, "Progress") lets a
server send only values that increase with each notification, and asks it to limit
their rate. `ProgressFilter` stands between the two, one for each call.
"""

import math
from collections import deque
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field

from opentabs_py.core.json_numbers import MAX_SAFE_INTEGER

# Values are clamped here, far below the largest double, so a larger one can always be sent.
_LARGEST: Final = 1e300

MESSAGE_MAX: Final = 4096  # characters of a report's message; a longer one is cut

# The pace for users who set none.
BURST: Final = 20  # notifications
RATE: Final = 10.0  # per second


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """One progress report as it arrives from a page.

    Attributes:
        seq: Its number within the call, from 0.
        progress: How far the tool is; None if it cannot say.
        total: The value of `progress` at the end, if the tool knows.
        message: What the tool is doing, for users.
    """

    seq: Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
    progress: float | None = None
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class WaitReport(ProgressReport):
    """Why a call has to wait, which says nothing about how far its tool is."""


@dataclass(frozen=True, slots=True)
class ProgressNotification:
    """The content of one `notifications/progress`, without its token."""

    progress: float
    total: float | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a client receives progress for one call.

    Attributes:
        burst: How many notifications may be sent at once.
        rate: How many more may be sent per second.
        keepalive: Seconds of silence after which the last notification is repeated, for clients
            that end a silent call sooner than this server does; None to never repeat.
    """

    burst: int = BURST
    rate: float = RATE
    keepalive: float | None = None

    def __post_init__(self) -> None:
        """Reject values that would send nothing, or everything."""
        if self.burst < 1:
            raise ValueError(f"burst is {self.burst}; use at least 1, so that anything can be sent")
        if not (self.rate > 0 and math.isfinite(self.rate)):
            raise ValueError(
                f"rate is {self.rate}; use a finite number of notifications per second above 0"
            )
        if self.keepalive is not None and not self.keepalive > 0:
            raise ValueError(f"keepalive is {self.keepalive}; use a number of seconds above 0")


class ProgressFilter:
    """Turns one call's reports into the notifications its client may be sent.

    A token bucket limits them: the first `burst` all pass, then `rate` per second.
    Of the reports waiting for their turn only the latest is kept; `finish` sends it
    at the latest. Costs O(1) per report and holds at most `burst + 1` of them.

    Times are seconds on any one monotonic clock.

    Args:
        pace: How many notifications may be sent, and how often at least.
        started: When the call began; with a keep-alive, the first silence begins there.
    """

    __slots__ = (
        "_finished",
        "_last",
        "_measured",
        "_pace",
        "_sent",
        "_sent_at",
        "_tokens",
        "_updated",
        "_waiting",
    )

    def __init__(self, pace: Pace | None = None, *, started: float = 0.0) -> None:
        self._pace = pace = pace or Pace()
        self._tokens = float(pace.burst)
        self._updated = -math.inf
        self._sent_at = started
        self._last = ProgressNotification(0.0, None, None)
        # All but the last already have a token; the last may have to wait for one.
        self._waiting: deque[ProgressReport] = deque()
        self._sent: float | None = None
        self._measured = False
        self._finished = False

    def report(self, report: ProgressReport, now: float) -> None:
        """Receive a report; dropped after `finish`."""
        if self._finished:
            return
        self._refill(now)
        if self._waiting and len(self._waiting) > self._tokens:
            self._waiting.pop()
        self._waiting.append(report)

    def drain(self, now: float) -> list[ProgressNotification]:
        """Return the notifications that may be sent now, in order; they count as sent."""
        self._refill(now)
        ready = min(len(self._waiting), int(self._tokens))
        if ready:
            self._sent_at = now
            self._tokens -= ready
            return [self._notification(self._waiting.popleft()) for _ in range(ready)]
        if self._waiting or self._repeat_time() > now or self._tokens < 1:
            return []
        self._sent_at = now
        self._tokens -= 1
        return [self._repetition(self._last.message)]

    def next_time(self) -> float | None:
        """Return when `drain` has something; None if nothing waits, or is to be repeated."""
        if self._waiting:
            return self._token_time()
        repeat = self._repeat_time()
        return None if repeat == math.inf else max(repeat, self._token_time())

    def finish(self, now: float) -> list[ProgressNotification]:
        """Return what is still to be sent before the call's response, and stop for good.

        It includes the last report whatever the rate, unless that was already sent.
        """
        last = self.drain(now)
        last += [self._notification(report) for report in self._waiting]
        self._waiting.clear()
        self._finished = True
        return last

    def _token_time(self) -> float:
        return self._updated + max(0.0, 1.0 - self._tokens) / self._pace.rate

    def _repeat_time(self) -> float:
        keepalive = self._pace.keepalive
        return math.inf if keepalive is None or self._finished else self._sent_at + keepalive

    def _refill(self, now: float) -> None:
        if now < self._updated:
            return
        promised = self._token_time()
        gained = (now - self._updated) * self._pace.rate
        self._tokens = min(float(self._pace.burst), self._tokens + gained)
        if now >= promised:  # rounding must not contradict `next_time`, or a shell would spin
            self._tokens = max(1.0, self._tokens)
        self._updated = now

    def _notification(self, report: ProgressReport) -> ProgressNotification:
        if isinstance(report, WaitReport):
            return self._repetition(report.message)
        total = None
        if report.progress is not None and math.isfinite(report.progress):
            value = max(-_LARGEST, min(report.progress, _LARGEST))
            self._measured = True
            if report.total is not None and math.isfinite(report.total) and report.total > 0:
                total = report.total  # a total of 0 would make many clients divide by zero
        elif self._measured:
            value = -math.inf  # a count would be mistaken for the tool's own measure
        else:
            value = 1.0 if self._sent is None else math.floor(self._sent) + 1.0
        if self._sent is not None and value <= self._sent:
            value = math.nextafter(self._sent, math.inf)
        self._sent = value
        self._last = ProgressNotification(value, total, report.message)
        return self._last

    def _repetition(self, message: str | None) -> ProgressNotification:
        """Repeat the last notification with the smallest increase, or send 0 before the first."""
        value = 0.0 if self._sent is None else math.nextafter(self._sent, math.inf)
        self._sent = value
        self._last = replace(self._last, progress=value, message=message)
        return self._last
