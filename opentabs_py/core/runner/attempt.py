"""One attempt at a test: its calls and its outcome."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from opentabs_py.core.console.rows import weight
from opentabs_py.core.runner.events import (
    LONGEST_TEXT,
    LONGEST_WHY,
    CallSeen,
    FaultsSeen,
    Phase,
    ScreenshotTaken,
    Unanswered,
)
from opentabs_py.core.text import cut_middle, shorten
from opentabs_py.core.trace.record import CallRecord

MOST_CALLS: Final = 200  # of an attempt; earlier ones are counted

AttemptOutcome = Literal["passed", "failed", "skipped", "xfailed"]
FailedIn = Literal["", "setup", "call", "teardown"]


@dataclass(slots=True)
class SeenCall:
    """A call of a test.

    Attributes:
        browser: The name of the browser, in a test with several.
        running: Whether it has not ended, as far as is known.
    """

    record: CallRecord
    browser: str
    running: bool


@dataclass(slots=True)
class Attempt:
    """One attempt at a test; most tests have one.

    Attributes:
        outcome: How it ended; None if it has not, or was stopped.
        failed_in: The phase that failed first.
        why: Its error in one line.
        text: Its error in full.
        left_out: How many of its calls are not kept.
        faults: What was done to each browser, by its name.
        forgotten: Whether its calls were dropped.
    """

    outcome: AttemptOutcome | None = None
    failed_in: FailedIn = ""
    seconds: float = 0.0
    why: str = ""
    text: str = ""
    sections: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: dict[str, SeenCall] = field(default_factory=dict[str, SeenCall])
    left_out: int = 0
    screenshots: list[ScreenshotTaken] = field(default_factory=list[ScreenshotTaken])
    faults: dict[str, FaultsSeen] = field(default_factory=dict[str, FaultsSeen])
    unanswered: list[Unanswered] = field(default_factory=list[Unanswered])
    forgotten: bool = False

    def drop_details(self) -> None:
        """Forget the calls, and what belongs to them."""
        self.calls, self.left_out, self.screenshots, self.faults = {}, 0, [], {}
        self.forgotten = True

    def handle_call(self, event: CallSeen) -> None:
        """Handle the start or the end of a call."""
        key = event.record.call_id
        known = self.calls.get(key)
        if known is not None and not known.running:
            return  # it ended before the news that it runs
        self.calls[key] = SeenCall(event.record, event.browser, event.running)
        if len(self.calls) > MOST_CALLS:
            del self.calls[next(iter(self.calls))]
            self.left_out += 1

    def handle_phase(self, event: Phase) -> None:
        """Handle the end of a phase; one failed phase fails the test."""
        # A fixture of all tests, such as the browser, starts in the first and ends in the last.
        if event.when == "call" or (event.when == "setup" and event.outcome == "failed"):
            self.seconds = event.seconds
        if event.sections:
            self.sections = [*event.sections]
        outcome = _outcome(event)
        if outcome == "failed" and self.outcome == "failed":
            if event.text not in self.text:  # a failure at which the run pauses comes twice
                self.text = cut_middle(f"{self.text}\n\n{event.text}", LONGEST_TEXT)
        elif outcome is not None and self.outcome != "failed":
            self.outcome = outcome
            self.failed_in = event.when if outcome == "failed" else ""
            self.why, self.text = event.why, event.text

    def break_off(self, why: str) -> None:
        """Fail the attempt, because the run ended first."""
        self.outcome, self.failed_in = "failed", "call"
        self.why, self.text = shorten(why, LONGEST_WHY), why

    def weight(self) -> int:
        """Return about how many bytes its details take."""
        texts = [self.text, *(text for _, text in self.sections)]
        return sum(map(len, texts)) + sum(weight(seen.record) for seen in self.calls.values())

    @property
    def records(self) -> Sequence[CallRecord]:
        """The records of its calls, in the order they started."""
        return [each.record for each in self.calls.values()]

    def details(self) -> dict[str, Any]:
        """Return all that is shown of it, for JSON, except its calls themselves."""
        return {
            "state": self.outcome or "idle",
            "seconds": round(self.seconds, 6),  # many tests take less than 1 ms
            "why": self.why,
            "text": self.text,
            "sections": [*self.sections],
            "leftOut": self.left_out,
            "forgotten": self.forgotten,
            "browsers": {key: seen.browser for key, seen in self.calls.items()},
            "running": [key for key, seen in self.calls.items() if seen.running],
            "screenshots": [
                {"when": each.when, "calls": [*each.calls], "file": each.file, "of": each.browser}
                for each in self.screenshots
            ],
            "injected": [
                {
                    "browser": each.browser,
                    "seed": each.seed,
                    "rules": [*each.rules],
                    "done": [*each.done],
                    "log": each.log,
                }
                for each in self.faults.values()
            ],
            "unanswered": [
                {
                    "browser": each.browser,
                    "recording": each.recording,
                    "requests": [{"text": text, "count": count} for text, count in each.requests],
                    "more": each.more,
                }
                for each in self.unanswered
            ],
        }


def _outcome(event: Phase) -> AttemptOutcome | None:
    if event.outcome == "failed":
        return "failed"
    if event.outcome == "skipped":
        return "xfailed" if event.expected else "skipped"
    return "passed" if event.outcome == "passed" and event.when == "call" else None
