"""Reports what this process runs to a directory, from which the report of the run is made."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from opentabs_py.core.runner.events import Collected, Event, ScreenshotTaken
from opentabs_py.runner.spool import SCREENSHOTS, SpoolWriter
from opentabs_py.testing.notes import ScreenshotStore
from opentabs_py.testing.reports.reporting import Reporting, known
from opentabs_py.testing.reports.run_stash import REPORTING

SHOWN_CALLS: Final = 10  # calls of a test that have screenshots
MOST_SCREENSHOTS: Final = 64 * 1024 * 1024  # bytes; more than a report holds


def spool(config: pytest.Config, directory: Path, process: str) -> None:
    """Report what this process runs from now on.

    Args:
        config: pytest's.
        directory: The run's directory.
        process: The name of the process.
    """
    writer = SpoolWriter(directory, process)
    config.add_cleanup(writer.close)
    names = (f"{process}-{number}.jpg" for number in count(1))
    store = ScreenshotStore(directory / SCREENSHOTS, names, SHOWN_CALLS)
    spooling = config.stash[REPORTING] = Spooling(writer, store)
    config.pluginmanager.register(spooling, "opentabs-reporting")


class Spooling(Reporting):
    """The part of pytest that reports to a directory.

    Once there are many screenshots, only those of tests that fail are kept.

    Args:
        writer: Writes there.
        store: Where screenshots are kept.
        most: How many bytes of screenshots are many.
    """

    def __init__(
        self, writer: SpoolWriter, store: ScreenshotStore, most: int = MOST_SCREENSHOTS
    ) -> None:
        super().__init__(self._write, store)
        self._writer = writer
        self._screenshots = store.directory
        self._left = most
        self._shown: list[Path] = []  # of the test that runs
        self._has_failed = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Report the tests that are going to run."""
        self.send(Collected(tests=tuple(map(known, session.items))))

    def begin_again(self, reports: Sequence[pytest.TestReport]) -> None:
        """Report an attempt that failed, after which the test runs again."""
        self._has_failed = True
        super().begin_again(reports)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Report that a test starts."""
        self._shown, self._has_failed = [], False
        super().pytest_runtest_logstart(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report that a phase has ended."""
        self._has_failed = self._has_failed or report.failed
        super().pytest_runtest_logreport(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Report that a test has ended."""
        for file in self._shown:
            if not self._has_failed and self._left < 0:
                file.unlink()
            else:
                self._left -= file.stat().st_size
        super().pytest_runtest_logfinish(nodeid)

    def _write(self, event: Event) -> None:
        if isinstance(event, ScreenshotTaken):
            self._shown.append(self._screenshots / event.file)
        self._writer.send(event)
