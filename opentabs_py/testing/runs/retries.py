"""`--opentabs-retries N`: run failed tests again; those that then pass are flaky."""

from collections.abc import Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
from _pytest.junitxml import bin_xml_escape, xml_key
from _pytest.runner import call_and_report  # pyright: ignore[reportUnknownVariableType]

from opentabs_py.testing.reports.run_stash import REPORTING

_ATTEMPTS: Final = "opentabs_failed_attempts"  # of a report: how each earlier attempt failed
# Whether a test's own fixtures are to end, or have failed to.
_OWN_FIRST: Final = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test until it passes or may not be run again; only the last attempt is reported."""
    retries: Any = item.config.getoption("opentabs_retries")
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reporting = item.config.stash.get(REPORTING, None)
    failed: list[str] = []
    function: Any = item
    sections = function._report_sections  # noqa: SLF001 (what pytest captured)
    while True:
        properties, captured = len(item.user_properties), len(sections)
        is_last = len(failed) >= retries
        reports, has_failed = _run_once(item, nextitem, is_last=is_last)
        if failed:
            _fail_if_skipped(reports, failed)
        if not has_failed or is_last or item.session.shouldfail or item.session.shouldstop:
            break
        if reporting is not None:
            reporting.begin_again(reports)
        failed.append("\n\n".join(each.longreprtext for each in reports if each.failed))
        del item.user_properties[properties:], sections[captured:]
    has_passed = not has_failed and not any(each.failed for each in reports[:-1])
    for report in reports:
        if failed:
            _note(report, failed, has_passed=has_passed)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _run_once(
    item: pytest.Item, nextitem: pytest.Item | None, *, is_last: bool
) -> tuple[list[pytest.TestReport], bool]:
    """Run a test as pytest does, but keep the fixtures that its next attempt needs, too.

    Otherwise those of the session would end after each attempt of the last test. Among them are the
    browser, and pytest-playwright's that empties the directory of all results.

    Returns:
        The reports, and whether the test has failed, other than in the teardown of what is wider.
    """
    function: Any = item
    if hasattr(item, "_request") and not function._request:  # noqa: SLF001 (as pytest)
        function._initrequest()  # noqa: SLF001
    reports = [call_and_report(item, "setup", log=False)]
    if reports[0].passed and not item.config.getoption("setuponly", default=False):
        reports.append(call_and_report(item, "call", log=False))
    has_failed = reports[-1].failed
    following: pytest.Item | pytest.Collector | None = nextitem
    if not is_last and has_failed:
        following = item.parent  # what has the fixtures of the test's module, and is not the test
    if item.session.shouldfail or item.session.shouldstop:
        following = None
    item.stash[_OWN_FIRST] = not is_last
    reports.append(call_and_report(item, "teardown", log=False, nextitem=following))
    # After the last attempt, all has ended at once, so that it is not known what failed.
    has_failed = has_failed or (reports[-1].failed and (is_last or item.stash[_OWN_FIRST]))
    if not is_last and has_failed:
        _forget_failures(item)
    if hasattr(item, "_request"):
        function._request, function.funcargs = False, None  # noqa: SLF001
    return reports, has_failed


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End a test's own fixtures before pytest ends all; if one fails, those that are wider stay."""
    if item.stash.get(_OWN_FIRST, False):
        session: Any = item.session
        session._setupstate.teardown_exact(item.parent)  # noqa: SLF001 (as pytest)
        item.stash[_OWN_FIRST] = False


def _forget_failures(item: pytest.Item) -> None:
    """Have the next attempt try fixtures again that failed; pytest would raise the same error."""
    function: Any = item
    if hasattr(item, "_fixtureinfo"):
        for definitions in function._fixtureinfo.name2fixturedefs.values():  # noqa: SLF001
            for definition in definitions:
                if definition.cached_result is not None and definition.cached_result[2] is not None:
                    definition.finish(function._request)  # noqa: SLF001


def _fail_if_skipped(reports: Sequence[pytest.TestReport], failed: Sequence[str]) -> None:
    """Report a test that is skipped after it has failed as failed: nothing has passed."""
    for report in reports:
        if report.skipped and not hasattr(report, "wasxfail"):
            report.outcome = "failed"
            report.longrepr = f"{failed[-1]}\n\nThe next attempt was skipped."


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> Any:
    """Count a test that passed only when it was run again as flaky."""
    if report.when == "call" and report.passed and _attempts(report):
        return "flaky", "r", ("FLAKY", {"yellow": True})
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how flaky tests failed."""
    flaky = terminalreporter.getreports("flaky")
    if flaky:
        terminalreporter.section("flaky tests", yellow=True)
    for report in flaky:
        attempts = _attempts(report)
        times = "once" if len(attempts) == 1 else f"{len(attempts)} times"
        terminalreporter.write_line(f"{report.nodeid} failed {times}, then passed:", yellow=True)
        terminalreporter.write_line(attempts[0])


class JUnit:
    """Writes failed attempts of flaky tests to the JUnit report, as Maven Surefire does.

    Args:
        xml: pytest's plugin that writes the report.
    """

    def __init__(self, xml: Any) -> None:
        self._xml = xml

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write those of one test."""
        if report.when == "call":
            for attempt in _attempts(report):
                why = [line[1:].strip() for line in attempt.splitlines() if line.startswith("E ")]
                message = bin_xml_escape((why or [""])[0])
                element = ET.Element("flakyFailure", message=message)
                element.text = bin_xml_escape(attempt)
                self._xml.node_reporter(report).append(element)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Find the JUnit report, if one is written."""
    xml = session.config.stash.get(xml_key, None)
    if xml is not None:
        session.config.pluginmanager.register(JUnit(xml), "opentabs-retries-junit")


def _attempts(report: object) -> Sequence[str]:
    return getattr(report, _ATTEMPTS, ())


def _note(report: pytest.TestReport, failed: Sequence[str], *, has_passed: bool) -> None:
    setattr(report, _ATTEMPTS, list(failed) if has_passed else [])
    if report.when == "teardown":
        report.user_properties.append(("opentabs_attempts", str(len(failed) + 1)))
        if has_passed:
            report.user_properties.append(("opentabs_flaky", failed[0]))
    if report.failed and not has_passed:
        text = f"It failed in all {len(failed) + 1} attempts; this is the last."
        report.sections.append(("OpenTabs: attempts", text))
