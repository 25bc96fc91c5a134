"""Reports a run to `opentabs test --ui`, and runs the tests that were chosen there."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from opentabs_py.core.runner.choice import is_chosen
from opentabs_py.core.runner.events import Collected, Paused, Resumed
from opentabs_py.testing.notes import ScreenshotStore
from opentabs_py.testing.reports.channel import RunnerChannel
from opentabs_py.testing.reports.reporting import Reporting, known, phase_of

SHOWN_CALLS: Final = 40  # calls of a test


class Watching(Reporting):
    """The part of pytest that reports to the runner.

    Args:
        channel: The way there.
    """

    def __init__(self, channel: RunnerChannel) -> None:
        names = (f"{number}.jpg" for number in count(1))
        super().__init__(
            channel.send, ScreenshotStore(Path(channel.plan.screenshots), names, SHOWN_CALLS)
        )
        self.channel = channel
        self._pauses = count(1)
        self._collected: Sequence[pytest.Item] | None = None

    def is_to_pause(self) -> bool:
        """Return whether the browser is kept open at a failure."""
        return self.channel.is_to_pause()

    @contextmanager
    def pause(self, report: pytest.TestReport) -> Generator[Callable[[], bool]]:
        """Report a failure, and that its browser is kept open as long as the context.

        Yields:
            A function that returns whether the user continues, in the page.
        """
        number, test = next(self._pauses), report.nodeid
        self.channel.send(phase_of(report))  # with retries, it is not reported before its teardown
        self.channel.send(Paused(test=test, pause=number))
        try:
            yield lambda: self.channel.is_to_resume(number)
        finally:
            self.channel.send(Resumed(test=test))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out the tests that were not chosen."""
        self._collected = [*items]
        others = [item for item in items if not self._is_chosen(item)]
        if others:
            items[:] = filter(self._is_chosen, items)
            config.hook.pytest_deselected(items=others)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Report the tests that run, and those that were not chosen, because they can be."""
        if self._collected is None:
            return  # what pytest was asked to collect is not there
        runs = {*session.items}  # without those that `--lf` has left out since
        tests = [item for item in self._collected if item in runs or not self._is_chosen(item)]
        self.channel.send(Collected(tests=tuple(map(known, tests))))

    def _is_chosen(self, item: pytest.Item) -> bool:
        return is_chosen(item.nodeid, self.channel.plan.chosen)

    def pytest_unconfigure(self) -> None:
        """Send the rest."""
        self.channel.close()
