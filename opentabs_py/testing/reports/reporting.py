"""Reports what happens in a run of pytest, as events, to those who show it."""

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from opentabs_py.core.runner.events import (
    BrowserStarted,
    Ended,
    Event,
    Known,
    NotCollected,
    Phase,
    Retried,
    Started,
)
from opentabs_py.testing.item_options import PEOPLE
from opentabs_py.testing.notes import Notes, ScreenshotStore

_PLAYWRIGHT_TRACES = "trace*.zip"
_OTHER_FILES = ("*.webm", "*.png", "*.trace")
# Failed, and run again by pytest-rerunfailures, which starts and ends each attempt, or pytest-retry
_REPEATED: Final[Any] = ("rerun", "retried")
_OUTPUT_FIXTURE = "output_path"  # pytest-playwright's: the directory of a test's artifacts


class Reporting:
    """The part of pytest that reports a run.

    Args:
        send: Sends an event.
        store: Where screenshots are kept.
    """

    def __init__(self, send: Callable[[Event], None], store: ScreenshotStore) -> None:
        self.send = send
        self._store = store
        self._root = Path()
        self._output: Path | None = None
        self._chromium = ""
        self._runs_again = False

    def notes(self, test: str, browser: str) -> Notes:
        """Return the notes of a test with a browser."""
        return Notes(self.send, test, browser, self._store)

    def begin_again(self, reports: Sequence[pytest.TestReport]) -> None:
        """Report an attempt that failed, after which the test runs again."""
        for report in reports:
            self.send(phase_of(report))
        self.send(Retried(test=reports[0].nodeid))

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Note what the paths in ids are relative to."""
        self._root = session.config.rootpath

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a file that cannot be imported."""
        if report.failed:
            file = report.nodeid.partition("::")[0]
            path = str(self._root / file) if file else ""
            self.send(NotCollected(file=file, path=path, text=report.longreprtext))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Report that a test starts."""
        self._output = None
        if not self._runs_again:
            self.send(Started(test=nodeid))
        self._runs_again = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report what there is to see at the end of a test, while its pages are open."""
        people = item.stash.get(PEOPLE, None)
        output = getattr(item, "funcargs", {}).get(_OUTPUT_FIXTURE)
        if output is not None:
            self._output = Path(output)
        report = yield
        if people is not None:
            self._output = people.first.output
            if people.chromium != self._chromium:
                self._chromium = people.chromium
                self.send(BrowserStarted(version=self._chromium))
            if call.when == "call" or (call.when == "setup" and report.failed):
                people.show_end(failed=report.failed)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report that a phase has ended."""
        if report.outcome in _REPEATED:
            self.begin_again([report])
            self._runs_again = True
        else:
            self.send(phase_of(report))
            # After a `rerun` comes the teardown of its attempt; any other phase is the next one's.
            self._runs_again = self._runs_again and report.when == "teardown"

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Report that a test has ended, unless it runs again."""
        if self._runs_again:
            return
        traces, files = self._files([_PLAYWRIGHT_TRACES]), self._files(_OTHER_FILES)
        self.send(Ended(test=nodeid, traces=traces, files=files))

    def _files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        if self._output is None:
            return ()
        found = [file for pattern in patterns for file in sorted(self._output.glob(pattern))]
        return tuple(str(each.absolute()) for each in found)


def known(item: pytest.Item) -> Known:
    """Return what a list of tests says about one."""
    file, line, _ = item.location
    path = str(item.path.absolute())
    in_id, _, name = item.nodeid.partition("::")
    spec: Any = getattr(item, "callspec", None)
    browser = None if spec is None else spec.params.get("browser_name")
    if browser is not None:  # pytest-playwright names it in each test
        name = name.replace(f"[{browser}]", "").replace(f"[{browser}-", "[")
    return Known(
        id=item.nodeid, file=in_id or file, path=path, name=name or item.name, line=(line or 0) + 1
    )


def phase_of(report: pytest.TestReport) -> Phase:
    """Return what is reported of a phase of a test."""
    crash = getattr(report.longrepr, "reprcrash", None)
    skipped = report.longrepr if isinstance(report.longrepr, tuple) else None
    expected = getattr(report, "wasxfail", None)
    why = crash.message if crash is not None else skipped[2] if skipped else ""
    when: Any = report.when
    return Phase(
        test=report.nodeid,
        # pytest-xdist does not know in which phase a worker died.
        when=when if when in ("setup", "call", "teardown") else "call",
        outcome="failed" if report.outcome in _REPEATED else report.outcome,
        expected=expected is not None,
        seconds=report.duration,
        why=_first_line(expected or why or report.longrepr or ""),
        text="" if skipped else report.longreprtext,
        sections=tuple((name, text) for name, text in report.sections),
    )


def _first_line(message: Any) -> str:
    return str(message).strip().partition("\n")[0]
