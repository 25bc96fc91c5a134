"""Reports a run to `opentabs test --ui`, and runs the tests that were chosen there."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.core.runner.choice import is_chosen
from opentabs_py.core.runner.events import (
    Collected,
    Ended,
    Known,
    NotCollected,
    Phase,
    Started,
    Staying,
    WentOn,
)
from opentabs_py.testing.channel import Channel
from opentabs_py.testing.items import PEOPLE
from opentabs_py.testing.notes import Notes

_PLAYWRIGHT_TRACES = "trace*.zip"


class Reporting:
    """The part of pytest that reports to the runner.

    Args:
        channel: The way there.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._number = count(1)
        self._stays = count(1)
        self._output: Path | None = None

    def notes(self, test: str, browser: str) -> Notes:
        """Return the notes of a test with a browser."""
        return Notes(self.channel, test, browser, self._number)

    @property
    def stays(self) -> bool:
        """Whether the browser is kept open at a failure."""
        return not self.channel.is_to_go_on(0)

    @contextmanager
    def stay(self, test: str) -> Generator[Callable[[], bool]]:
        """Report that a test's browser is kept open as long as the context.

        Yields:
            A function that returns whether somebody goes on, in the page.
        """
        stay = next(self._stays)
        self.channel.send(Staying(test=test, stay=stay))
        try:
            yield lambda: self.channel.is_to_go_on(stay)
        finally:
            self.channel.send(WentOn(test=test))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Report a file that cannot be imported."""
        if report.failed:
            file = report.nodeid.partition("::")[0]
            path = str(Path(str(report.fspath)).absolute()) if report.fspath else file
            self.channel.send(NotCollected(file=file, path=path, text=report.longreprtext))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Report all tests, and leave out those that were not chosen."""
        self.channel.send(Collected(tests=tuple(map(_known, items))))
        chosen = self.channel.plan.chosen
        others = [item for item in items if not is_chosen(item.nodeid, chosen)]
        if others:
            items[:] = [item for item in items if is_chosen(item.nodeid, chosen)]
            config.hook.pytest_deselected(items=others)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Report that a test starts."""
        self._output = None
        self.channel.send(Started(test=nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report what there is to see at the end of a test, while its pages are open."""
        people = item.stash.get(PEOPLE, None)
        report = yield
        if people is not None:
            self._output = people.first.output
            if call.when == "call":
                people.show_end(failed=report.failed)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report that a phase has ended."""
        crash = getattr(report.longrepr, "reprcrash", None)
        skipped = report.longrepr if isinstance(report.longrepr, tuple) else None
        event = Phase(
            test=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            expected=hasattr(report, "wasxfail"),
            seconds=report.duration,
            why=_why(crash.message if crash is not None else skipped[2] if skipped else ""),
            text="" if skipped else report.longreprtext,
            sections=tuple((name, text) for name, text in report.sections),
        )
        self.channel.send(event)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Report that a test has ended."""
        found = [] if self._output is None else sorted(self._output.glob(_PLAYWRIGHT_TRACES))
        self.channel.send(Ended(test=nodeid, traces=tuple(str(each.absolute()) for each in found)))

    def pytest_unconfigure(self) -> None:
        """Send the rest."""
        self.channel.close()


def _why(message: Any) -> str:
    return str(message).strip().partition("\n")[0]


def _known(item: pytest.Item) -> Known:
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
