"""The tests of a plugin and the state of their run, as the pages see them.

As with the console's board, a page says which version it has seen and gets what has changed since,
so a page that reads slowly takes no memory and holds up nothing.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, assert_never

from opentabs_py.core.console.shelf import Delta, Shelf
from opentabs_py.core.runner.choice import Chosen, is_chosen
from opentabs_py.core.runner.events import (
    BrowserStarted,
    CallSeen,
    Collected,
    Ended,
    Event,
    FaultsSeen,
    Lost,
    NotCollected,
    Paused,
    Phase,
    Resumed,
    Retried,
    ScreenshotTaken,
    Started,
    TestEvent,
    Unanswered,
)
from opentabs_py.core.runner.one_test import OneTest

MOST_TESTS: Final = 100_000
WHOLE: Final = 128 * 1024 * 1024  # bytes of details; the tests that ended first lose theirs
_STATUS: Final = "status"


class RunBoard:
    """The tests, each with its last run.

    Args:
        whole: About how many bytes the details of all tests may take.
        directory: The directory that files in it are shown relative to, absolute.

    Attributes:
        version: Increases with every change.
        tests: The tests by id, in the order in which they run.
    """

    def __init__(self, *, whole: int = WHOLE, directory: str = "") -> None:
        self.version = 1
        self.tests: dict[str, OneTest] = {}
        self._rows: Shelf[Mapping[str, Any]] = Shelf(MOST_TESTS)
        self._status: Shelf[Mapping[str, Any]] = Shelf(1)
        self._chosen: Chosen = None
        self._broken: list[NotCollected] = []
        self._ended: deque[tuple[str, int, int]] = deque()  # id, changes and weight of each
        self._weight = 0
        self._most_weight = whole
        self._directory = directory

    # --- what happens ---

    def set_status(self, status: Mapping[str, Any]) -> None:
        """Replace what is shown of the run as a whole."""
        self._status.replace({_STATUS: status}, self._next())

    def begin(self, chosen: Chosen) -> None:
        """Handle the start of a run: its tests wait."""
        self._chosen = chosen
        self._broken = []
        for test in self.tests.values():
            if is_chosen(test.id, chosen):
                self._wait(test)

    def set_units(self, units: Iterable[OneTest]) -> None:
        """Replace the tests that Node runs."""
        there = [test for test in self.tests.values() if test.kind != "node"]
        self._replace([*units, *there])

    def handle(self, event: Event) -> None:
        """Handle what a run of pytest says."""
        match event:
            case Collected():
                self._collect(event)
            case NotCollected():
                self._broken.append(event)
            case Lost() | BrowserStarted():
                pass  # they are about the run
            case _:
                test = self.tests.get(event.test)
                if test is not None:
                    self._handle_of(test, event)
                    self._show(test)

    def end(self, why: str = "") -> None:
        """Handle the end of the run, whether its tests have ended or not.

        Args:
            why: Why that is a failure of the test that runs; empty if the run was stopped.
        """
        for test in self.tests.values():
            if test.runs:
                test.break_off(why)
                self._show(test)

    def _handle_of(self, test: OneTest, event: TestEvent) -> None:
        match event:
            case Started():
                test.forget()
                test.state = "running"
            case CallSeen():
                test.now.handle_call(event)
            case ScreenshotTaken():
                test.now.screenshots.append(event)
            case FaultsSeen():
                test.now.faults[event.browser] = event
            case Unanswered():
                test.now.unanswered.append(event)
            case Phase():
                test.now.handle_phase(event)
            case Retried():
                test.begin_again()
            case Paused():
                test.state, test.pause = "paused", event.pause
            case Resumed():
                test.state, test.pause = "running", None
            case Ended():
                test.end(event.traces, event.files)
                self._weigh(test)
            case _:
                assert_never(event)

    def _collect(self, event: Collected) -> None:
        """Replace the list, and keep the results of the tests that are still in it."""
        nodes = [test for test in self.tests.values() if test.kind == "node"]
        found = [
            OneTest(
                each.id,
                self._shown(each.file, each.path),
                each.path,
                each.name,
                each.line,
                "pytest",
            )
            for each in event.tests
        ]
        for broken in self._broken:
            file = self._shown(broken.file, broken.path)
            module = OneTest(broken.file, file, broken.path, "", 0, "module")
            module.now.text = broken.text
            module.now.why = "Its tests could not be collected."
            module.now.outcome = "failed"
            module.state = "failed"
            found.append(module)
        self._replace([*nodes, *found])

    def _shown(self, file: str, path: str) -> str:
        # pytest's root may be above the plugin, or below.
        inside = path.removeprefix(f"{self._directory}/")
        return file if inside == path or not self._directory else inside

    def _replace(self, tests: Sequence[OneTest]) -> None:
        known, self.tests = self.tests, {}
        files = {test.file: at for at, test in reversed([*enumerate(tests)])}
        # A file's tests are together, even if some of them run before those of other files.
        ordered = sorted(tests, key=lambda each: files[each.file])
        for at, new in enumerate(ordered):
            old = known.get(new.id)
            if old is None or old.kind != new.kind or new.kind == "module":
                test = new
                test.changes = 0 if old is None else old.changes + 1
                if is_chosen(test.id, self._chosen) and test.kind != "module":
                    test.state = "waiting"
            else:
                test = old
                test.file, test.path, test.name, test.line = new.file, new.path, new.name, new.line
            test.at = at
            self.tests[test.id] = test
        self._rows.replace({key: test.row() for key, test in self.tests.items()}, self._next())

    def _wait(self, test: OneTest) -> None:
        if test.kind == "module":
            return  # it is collected again, and then gone if it is fixed
        test.forget()
        test.state = "waiting"
        self._show(test)

    def _show(self, test: OneTest) -> None:
        test.changes += 1
        self._rows.put(test.id, test.row(), self._next())

    def _weigh(self, test: OneTest) -> None:
        heavy = test.weight()
        self._ended.append((test.id, test.changes + 1, heavy))
        self._weight += heavy
        while self._weight > self._most_weight:
            key, changes, less = self._ended.popleft()
            self._weight -= less
            old = self.tests.get(key)
            if old is not None and old.changes <= changes and not old.runs:
                old.drop_details()

    # --- what readers get ---

    @property
    def failed(self) -> tuple[str, ...]:
        """The ids of the tests that have failed, of those that can run by themselves."""
        return tuple(test.id for test in self.tests.values() if test.state in ("failed", "paused"))

    @property
    def files(self) -> dict[str, str]:
        """The files that contain tests, by absolute path, as they are in ids."""
        return {test.path: test.id.partition("::")[0] for test in self.tests.values()}

    def since(self, version: int) -> dict[str, Any] | None:
        """Return what has changed after a version, as JSON; None if nothing has.

        Args:
            version: The reader's version; 0 if it knows nothing.
        """
        if version >= self.version:
            return None
        update: dict[str, Any] = {"version": self.version}
        shelves = {"tests": self._rows, "status": self._status}
        for name, shelf in shelves.items():
            changes: Delta[Mapping[str, Any]] = shelf.since(version)
            if changes:
                update[name] = changes.to_json()
        return update

    def _next(self) -> int:
        self.version += 1
        return self.version
