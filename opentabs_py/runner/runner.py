"""Run tests on request and when files change, and track their state."""

import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from opentabs_py.calling.changes import Changes
from opentabs_py.calling.clock import wall_clock
from opentabs_py.config.paths import absolute
from opentabs_py.core.runner import PLAN
from opentabs_py.core.runner.board import RunBoard
from opentabs_py.core.runner.choice import Chosen, after_change, is_chosen
from opentabs_py.core.runner.events import (
    LONGEST_TEXT,
    Collected,
    Ended,
    Event,
    Lost,
    Phase,
    Plan,
    Resume,
    ScreenshotTaken,
    SetPauseOnFailure,
    Started,
    read_event,
    to_line,
)
from opentabs_py.core.runner.lines import Lines
from opentabs_py.core.runner.one_test import OneTest
from opentabs_py.errors import BuildError
from opentabs_py.runner.process import PYTEST, read_program, run_with_socket, send_now

_USUAL: Final = (0, 1, 5)  # pytest's exit codes: passed, failed, no tests
_TRACING: Final = "--tracing"


@dataclass(frozen=True, slots=True)
class BuildProblem:
    """Why a plugin cannot be built: where, and what to do about it."""

    place: str
    why: str


@dataclass(frozen=True, slots=True)
class Suite:
    """What runs.

    Attributes:
        directory: The plugin's directory.
        paths: What pytest collects.
        pytest_args: Its other arguments.
        fuzz: The options of `opentabs test` with which it checks tools instead of tests.
        units: The files with tests for Node.
        unit_command: Returns the command that runs one of them, or raises BuildError; called in a
            thread, because it may install what TypeScript needs.
        build: Builds the plugin; returns what is wrong with it.
        headed: Whether the browser has a window.
        terminal: Whether the user can press Enter.
    """

    directory: Path
    paths: Sequence[str]
    pytest_args: Sequence[str]
    units: Callable[[], Sequence[str]]
    unit_command: Callable[[str], Sequence[str]]
    build: Callable[[], Awaitable[Sequence[BuildProblem]]]
    headed: bool
    terminal: bool
    fuzz: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class _Wish:
    chosen: Chosen
    why: str = ""


class Runner:
    """Runs a suite.

    Args:
        suite: What runs.
        scratch: A directory for screenshots and traces.

    Attributes:
        board: The state that pages show.
        suite: What runs.
        watches: Whether tests run again when files change.
        pauses: Whether the browser is kept open at a failure.
    """

    def __init__(self, suite: Suite, scratch: Path) -> None:
        self._directory = absolute(suite.directory)
        self.board = RunBoard(directory=str(self._directory))
        self.watches = True
        self.pauses = True
        self.suite = suite
        self._scratch = scratch
        self._wish = _Wish(None, "first run")
        self._wished = anyio.Event()
        self._wished.set()
        self._changes = Changes()
        self._current: anyio.CancelScope | None = None
        self._socket: socket.socket | None = None
        self._asked: Chosen = None  # what users have asked for last
        self._is_stale = True  # files have changed since the plugin was built
        self._number = 0
        self._state = "building"
        self._why = ""
        self._started = wall_clock()
        self._seconds = 0.0
        self._problems: Sequence[BuildProblem] = ()
        self._error = ""
        self._lost = 0
        self._show()

    # --- what users ask for ---

    def run_tests(self, chosen: Chosen) -> None:
        """Run tests, after stopping those that run."""
        self._asked = chosen
        self._begin(_Wish(chosen))

    def stop(self) -> None:
        """Stop the run."""
        if self._current is not None:
            self._current.cancel()

    def resume(self, pause: int) -> None:
        """End a pause at a failure."""
        if self._socket is not None:
            send_now(self._socket, to_line(Resume(pause=pause)))

    def set_pauses(self, pauses: bool) -> None:
        """Pause at failures from now on, or do not; a pause that has begun ends."""
        self.pauses = pauses
        if self._socket is not None:
            send_now(self._socket, to_line(SetPauseOnFailure(pauses=pauses)))
        self._show()

    def set_watches(self, watches: bool) -> None:
        """Run tests again when files change, or do not."""
        self.watches = watches
        self._show()

    def handle_change(self, files: Sequence[str], text: str) -> None:
        """Handle changes of files.

        Args:
            files: Their paths, relative to the plugin's directory.
            text: The same, for users.
        """
        self._is_stale = True
        if self.watches:
            paths = [str(self._directory / file) for file in files]
            # What a stopped run has not come to runs again, too.
            runs = self._current is not None
            again = self._asked if runs else after_change(paths, self.board.files, self._asked)
            self._begin(_Wish(again, text))

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of the board."""
        return self._changes.next()

    # --- what is done ---

    def _begin(self, wish: _Wish) -> None:
        self._wish = wish
        self._wished.set()
        self.stop()

    async def run(self) -> None:
        """Run what is asked for, until cancelled."""
        while True:
            await self._wished.wait()
            self._wished = anyio.Event()
            with anyio.CancelScope() as self._current:
                await self._run(self._wish)
            self._current = None

    async def _run(self, wish: _Wish) -> None:
        self._why, self._error, self._problems = wish.why, "", ()
        self._started, self._seconds, self._lost = wall_clock(), 0.0, 0
        self._number += 1
        began = anyio.current_time()
        why = ""
        try:
            self.board.begin(wish.chosen)
            if self._is_stale:
                self._set_state("building")
                await self._build()
            if not self._problems:
                self._set_state("running")
                why = await self._test(wish.chosen)
        finally:
            self.board.end(why)
            self._error = why
            self._seconds = anyio.current_time() - began
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._clean, self._kept())
            self._set_state("idle")

    async def _build(self) -> None:
        self._is_stale = False  # until a file changes, perhaps during the build
        is_built = False
        try:
            self._problems = await self.suite.build()
            is_built = not self._problems
        except BuildError as error:
            self._problems = [BuildProblem("", str(error))]
        finally:
            if not is_built:  # also if it was cancelled
                self._is_stale = True

    async def _test(self, chosen: Chosen) -> str:
        """Run the tests; return what went wrong, besides tests that fail."""
        units = self.suite.units()
        self.board.set_units([_unit(each, self._directory) for each in units])
        why = ""

        async def run_pytest() -> None:
            nonlocal why
            why = await self._run_pytest(chosen)

        async with anyio.create_task_group() as tasks:
            if self.suite.paths:
                tasks.start_soon(run_pytest)
            for unit in [each for each in units if is_chosen(each, chosen)]:
                await self._run_unit(unit)
        return why

    async def _run_unit(self, unit: str) -> None:
        self._handle(Started(test=unit))
        began = anyio.current_time()
        try:
            command = await anyio.to_thread.run_sync(self.suite.unit_command, unit)
        except BuildError as error:
            why, output = str(error), ""
        else:
            code, output = await read_program(command, longest=LONGEST_TEXT)
            why = f"Node exited with {code}." if code else ""
        phase = Phase(
            test=unit,
            when="call",
            outcome="failed" if why else "passed",
            seconds=anyio.current_time() - began,
            why=why,
            text=output if why else "",
            sections=() if why else (("Output", output),),
        )
        self._handle(phase)
        self._handle(Ended(test=unit))

    async def _run_pytest(self, chosen: Chosen) -> str:
        directory = self._scratch / str(self._number)
        screenshots = directory / "screenshots"
        await anyio.Path(screenshots).mkdir(parents=True)
        lines = Lines()
        collected = False

        def handle(data: bytes) -> None:
            nonlocal collected
            for line in lines.feed(data):
                event = read_event(line)
                if event is not None:
                    collected = collected or isinstance(event, Collected)
                    self._handle(event)

        ours, theirs = socket.socketpair()
        with ours, theirs:
            self._socket = ours  # what changes after the plan is made is sent
            try:
                plan = Plan(
                    socket=theirs.fileno(),
                    screenshots=str(screenshots),
                    chosen=chosen,
                    pauses=self.pauses,
                )
                file = directory / "plan.json"
                await anyio.Path(file).write_bytes(plan.model_dump_json().encode())
                code = await run_with_socket(
                    self._command(chosen, directory),
                    environment={PLAN: str(file)},
                    ends=(ours, theirs),
                    handle=handle,
                )
            finally:
                self._socket = None
        if collected and code in _USUAL:
            return ""
        how = f"was ended by signal {-code}" if code < 0 else f"exited with {code}"
        return f"pytest {how}. The terminal shows what it printed."

    def _command(self, chosen: Chosen, directory: Path) -> list[str]:
        given = self.suite.pytest_args
        added = ["--continue-on-collection-errors"]
        if not any(each.split("=")[0] == "--output" for each in given):
            added.append(f"--output={directory / 'results'}")
        # Playwright's trace makes tests half as slow again, so a run of all has none.
        if chosen and not any(each.split("=")[0] == _TRACING for each in given):
            is_one = len(chosen) == 1 and "::" in chosen[0]
            added.append(f"{_TRACING}={'on' if is_one else 'retain-on-failure'}")
        return [*PYTEST, *self.suite.paths, *added, *given]

    def _handle(self, event: Event) -> None:
        if isinstance(event, Lost):
            self._lost += event.count
            self._show()
        if isinstance(event, ScreenshotTaken):
            event = event.model_copy(update={"file": f"{self._number}/{event.file}"})
        self.board.handle(event)
        self._changes.notify()

    def _kept(self) -> set[str]:
        """Return the directories of runs that tests still refer to."""
        tests = self.board.tests.values()
        attempts = [attempt for test in tests for attempt in test.attempts]
        screenshots = {each.file for attempt in attempts for each in attempt.screenshots}
        return {file.partition("/")[0] for file in screenshots} | {
            Path(trace).relative_to(self._scratch).parts[0]
            for test in tests
            for trace in test.traces
            if Path(trace).is_relative_to(self._scratch)
        }

    def _clean(self, kept: set[str]) -> None:
        for directory in self._scratch.iterdir():
            if directory.name not in kept:
                with suppress(OSError):
                    shutil.rmtree(directory)

    # --- what is shown ---

    def _set_state(self, state: str) -> None:
        self._state = state
        self._show()

    def _show(self) -> None:
        status: Mapping[str, Any] = {
            "state": self._state,
            "why": self._why,
            "started": self._started,
            "seconds": round(self._seconds, 3),
            "watches": self.watches,
            "pauses": self.pauses,
            "headed": self.suite.headed,
            "terminal": self.suite.terminal,
            "directory": self._directory.name,
            "problems": [{"place": each.place, "why": each.why} for each in self._problems],
            "error": self._error,
            "lost": self._lost,
        }
        self.board.set_status(status)
        self._changes.notify()


def _unit(file: str, directory: Path) -> OneTest:
    path = absolute(Path(file))
    shown = str(path.relative_to(directory)) if path.is_relative_to(directory) else file
    return OneTest(file, shown, str(path), path.name, 0, "node")
