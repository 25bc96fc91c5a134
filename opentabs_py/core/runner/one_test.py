"""The state of one test, and its changes with each event."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from opentabs_py.core.runner.attempt import Attempt

State = Literal[
    "idle", "waiting", "running", "paused", "passed", "flaky", "failed", "skipped", "xfailed"
]
RUNNING: Final = frozenset({"waiting", "running", "paused"})
STOPPED: Final = "It was running when the run was stopped."
NO_RESULT: Final = "It ended without a result."


@dataclass(slots=True)
class OneTest:
    """A test, and its last run.

    Attributes:
        id: Its id, which is unique.
        file: Its file, as users know it.
        path: Its file, absolute.
        name: Its name within the file.
        line: Where it begins; 0 if that is not known.
        kind: What runs it; a `module` is one that could not be imported.
        at: Its place in the list.
        now: The attempt that runs, or was the last.
        earlier: The attempts before, which have failed.
        traces: Playwright's traces of it, as files.
        files: What else was kept of it.
    """

    id: str
    file: str
    path: str
    name: str
    line: int
    kind: Literal["pytest", "node", "module"]
    at: int = 0
    state: State = "idle"
    now: Attempt = field(default_factory=Attempt)
    earlier: list[Attempt] = field(default_factory=list[Attempt])
    traces: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pause: int | None = None
    changes: int = 0

    @property
    def runs(self) -> bool:
        """Whether it runs, or is about to."""
        return self.state in RUNNING

    @property
    def attempts(self) -> list[Attempt]:
        """All attempts, the last one last."""
        return [*self.earlier, self.now]

    def forget(self) -> None:
        """Forget the last run."""
        self.now, self.earlier = Attempt(), []
        self.traces, self.files, self.pause = (), (), None

    def drop_details(self) -> None:
        """Forget the calls of the last run, and what belongs to them."""
        for attempt in self.attempts:
            attempt.drop_details()

    def begin_again(self) -> None:
        """Handle a failure after which it runs again."""
        self.earlier.append(self.now)
        self.now = Attempt()

    def end(self, traces: tuple[str, ...], files: tuple[str, ...] = ()) -> None:
        """Handle its end."""
        match self.now.outcome:
            case None:
                self.state, self.now.why = "idle", NO_RESULT
            case "passed" if self.earlier:
                self.state = "flaky"
            case outcome:
                self.state = outcome
        self.traces, self.files, self.pause = traces, files, None

    def break_off(self, why: str) -> None:
        """Handle the end of the run before its own.

        Args:
            why: Why that is a failure of the test; empty if the run was stopped.
        """
        began = self.state != "waiting"
        self.pause = None
        if began and why:
            self.now.break_off(why)
        elif began and self.now.outcome is None:
            self.now.why = STOPPED
        self.state = "failed" if self.now.outcome == "failed" else "idle"

    def weight(self) -> int:
        """Return about how many bytes its details take."""
        return sum(attempt.weight() for attempt in self.attempts)

    def row(self) -> dict[str, Any]:
        """Return what a list of tests shows, for JSON."""
        now = self.now
        return {
            "id": self.id,
            "file": self.file,
            "name": self.name,
            "line": self.line,
            "kind": self.kind,
            "at": self.at,
            "state": self.state,
            "failedIn": now.failed_in,
            "seconds": round(now.seconds, 6),  # many tests take less than 1 ms
            "why": now.why,
            "calls": len(now.calls) + now.left_out,
            "faults": sum(len(each.rules) + len(each.done) for each in now.faults.values()),
            "attempts": len(self.attempts),
            "pause": self.pause,
            "changes": self.changes,
        }
