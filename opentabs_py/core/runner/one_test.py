"""What is known of one test, and how it changes with what happens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from opentabs_py.core.console.rows import call_row, weight
from opentabs_py.core.runner.events import CallSeen, FaultsSeen, Phase, Pictured
from opentabs_py.core.text import shorten
from opentabs_py.core.trace.record import CallRecord

MOST_CALLS: Final = 200  # of a test; earlier ones are counted
LONGEST_TEXT: Final = 200_000  # characters of an error, or of what a test printed
LONGEST_WHY: Final = 300

State = Literal["idle", "waiting", "running", "staying", "passed", "failed", "skipped", "xfailed"]
RUNNING: Final = frozenset({"waiting", "running", "staying"})


@dataclass(slots=True)
class Seen:
    """A call of a test.

    Attributes:
        browser: The name of the browser, in a test with several.
        running: Whether it has not ended, as far as is known.
    """

    record: CallRecord
    browser: str
    running: bool


@dataclass(slots=True)
class OneTest:
    """A test, and its last run.

    Attributes:
        id: Its id, which is unique.
        file: Its file, as people know it.
        path: Its file, absolute.
        name: Its name within the file.
        line: Where it begins; 0 if that is not known.
        kind: What runs it; a `module` is one that could not be imported.
        at: Its place in the list.
    """

    id: str
    file: str
    path: str
    name: str
    line: int
    kind: Literal["pytest", "node", "module"]
    at: int = 0
    state: State = "idle"
    seconds: float = 0.0
    why: str = ""
    text: str = ""
    sections: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: dict[str, Seen] = field(default_factory=dict[str, Seen])
    left_out: int = 0
    pictures: list[Pictured] = field(default_factory=list[Pictured])
    faults: dict[str, FaultsSeen] = field(default_factory=dict[str, FaultsSeen])
    traces: tuple[str, ...] = ()
    stay: int | None = None
    forgotten: bool = False
    changes: int = 0
    _outcome: State | None = None

    @property
    def runs(self) -> bool:
        """Whether it runs, or is about to."""
        return self.state in RUNNING

    def forget(self) -> None:
        """Forget the last run."""
        self.seconds, self.why, self.text = 0.0, "", ""
        self.sections, self.traces, self.stay, self._outcome = [], (), None, None
        self.drop_details()
        self.forgotten = False

    def drop_details(self) -> None:
        """Forget the calls of the last run, and what belongs to them."""
        self.calls, self.left_out, self.pictures, self.faults = {}, 0, [], {}
        self.forgotten = True

    def handle_call(self, event: CallSeen) -> None:
        """Handle that a call has started or ended."""
        key = event.record.call_id
        known = self.calls.get(key)
        if known is not None and not known.running:
            return  # it ended before the news that it runs
        self.calls[key] = Seen(event.record, event.browser, event.running)
        if len(self.calls) > MOST_CALLS:
            del self.calls[next(iter(self.calls))]
            self.left_out += 1

    def handle_phase(self, event: Phase) -> None:
        """Handle that a phase has ended: any that fails, fails the test."""
        # A fixture of all tests, such as the browser, starts in the first and ends in the last.
        if event.when == "call" or (event.when == "setup" and event.outcome == "failed"):
            self.seconds = event.seconds
        if event.sections:
            self.sections = [(name, _cut(text)) for name, text in event.sections]
        outcome = _outcome(event)
        if outcome == "failed" and self._outcome == "failed":
            self.text = _cut(f"{self.text}\n\n{event.text}")
        elif outcome is not None and self._outcome != "failed":
            self._outcome = outcome
            self.why, self.text = shorten(event.why, LONGEST_WHY), _cut(event.text)

    def end(self, traces: tuple[str, ...]) -> None:
        """Handle its end."""
        self.state = self._outcome or "idle"
        self.traces, self.stay = traces, None

    def break_off(self, why: str) -> None:
        """Handle that the run has ended before it.

        Args:
            why: Why that is a failure of the test; empty if the run was stopped.
        """
        began = self.state != "waiting"
        self.stay = None
        if began and why:
            self.state, self.why, self.text = "failed", shorten(why, LONGEST_WHY), why
        else:
            self.state = "failed" if self._outcome == "failed" else "idle"

    def weight(self) -> int:
        """Return about how many bytes its details take."""
        texts = [self.text, *(text for _, text in self.sections)]
        return sum(map(len, texts)) + sum(weight(seen.record) for seen in self.calls.values())

    def row(self) -> dict[str, Any]:
        """Return what a list of tests shows, for JSON."""
        return {
            "id": self.id,
            "file": self.file,
            "name": self.name,
            "line": self.line,
            "kind": self.kind,
            "at": self.at,
            "state": self.state,
            "seconds": round(self.seconds, 3),
            "why": self.why,
            "calls": len(self.calls) + self.left_out,
            "faults": sum(len(each.rules) + len(each.done) for each in self.faults.values()),
            "stay": self.stay,
            "changes": self.changes,
        }

    def details(self) -> dict[str, Any]:
        """Return what else is shown of it, for JSON, except its calls in full."""
        return {
            **self.row(),
            "path": self.path,
            "text": self.text,
            "sections": [*self.sections],
            "leftOut": self.left_out,
            "forgotten": self.forgotten,
            "browsers": {key: seen.browser for key, seen in self.calls.items()},
            "rows": [call_row(each.record, running=each.running) for each in self.calls.values()],
            "pictures": [
                {"when": each.when, "calls": [*each.calls], "file": each.file, "of": each.browser}
                for each in self.pictures
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
            "traces": [*self.traces],
        }

    @property
    def records(self) -> Sequence[CallRecord]:
        """The records of its calls, in the order they started."""
        return [each.record for each in self.calls.values()]


def _outcome(event: Phase) -> State | None:
    if event.outcome == "failed":
        return "failed"
    if event.outcome == "skipped":
        return "xfailed" if event.expected else "skipped"
    return "passed" if event.outcome == "passed" and event.when == "call" else None


def _cut(text: str) -> str:
    """Return a text, or its end: an error ends with what went wrong."""
    return text if len(text) <= LONGEST_TEXT else "…" + text[-LONGEST_TEXT:]
