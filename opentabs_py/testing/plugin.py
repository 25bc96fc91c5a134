"""The pytest plugin. Every run of pytest imports this module, so it imports next to nothing."""

import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Generator
from contextlib import ExitStack
from typing import Any

import pytest

from opentabs_py.testing.item_options import MARK, PEOPLE, is_async, is_ours, marks_of, option
from opentabs_py.testing.reports.run_stash import REPORTING, WATCHING

_WHY_HANGS = "OpenTabs: why tools hang"
_SECTION = "opentabs_report"  # a property of reports that have the section, also in JUnit XML
_TRACE_STEM = "opentabs"
# `PLAN` and `STARTED_BY` of `core.runner`, which runs without our tests must not import.
_PLAN = "OPENTABS_TEST_PLAN"
_STARTED_BY = "OPENTABS_TEST_STARTED_BY"
_REPRODUCTION = "OpenTabs: a test that reproduces it"
_CHOICES = {  # of options that the ini file may set, too
    "opentabs_clock": ["real", "manual"],
    "opentabs_trace": ["on", "off", "retain-on-failure"],
    "opentabs_record": ["none", "missing", "all"],
}
# The errors of asyncio, and of anyio.
_LOOP_RUNS = ("cannot be called from a running event loop", "Already running asyncio")
_WHY_LOOP_RUNS = """\
An earlier test used Playwright's sync API, which keeps its event loop running in this thread, so no
other loop can run here. Tests written with `async def` run before those tests. Put async fixtures
with a scope wider than one test into a module that contains only async tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the test kit."""
    group = parser.getgroup("opentabs", "OpenTabs")
    clock = (
        "What drives the timers of calls. real: real time, even in tests marked otherwise; manual: "
        "clock.advance(), in tests without a mark. Default: the test's mark, or real."
    )
    trace = "Record the calls of each test in a trace file. Default: off."
    seed = "Seed for random faults of opentabs.faults; overrides the marks of tests. Default: 0."
    group.addoption("--opentabs-clock", choices=_CHOICES["opentabs_clock"], help=clock)
    group.addoption("--opentabs-trace", choices=_CHOICES["opentabs_trace"], help=trace)
    ui = (
        "Keep the browser open at a failure until you press Enter or close its window; set by "
        "`opentabs test --ui`."
    )
    group.addoption("--opentabs-ui", action="store_true", help=ui)
    group.addoption("--opentabs-faults-seed", type=int, metavar="N", help=seed)
    record = (
        "What to do with the recordings that tests name. none: replay them, and let nothing reach "
        "the site; missing: replay what they have, and record the rest from the site; all: record "
        "everything again. Written if the test passes. Default: none."
    )
    group.addoption("--opentabs-record", choices=_CHOICES["opentabs_record"], help=record)
    fuzz = "Instead of the tests in files, check each tool with N drawn inputs."
    group.addoption("--opentabs-fuzz", type=_positive, metavar="N", help=fuzz)
    drawn = "Draw other inputs with --opentabs-fuzz. Default: 0."
    group.addoption("--opentabs-fuzz-seed", type=int, default=0, metavar="N", help=drawn)
    writes = "With --opentabs-fuzz, check tools without a readOnlyHint, too."
    group.addoption("--opentabs-fuzz-writes", action="store_true", help=writes)
    repeat = "Run each test N times."
    group.addoption("--opentabs-repeat", type=_positive, metavar="N", help=repeat)
    retries = "Run a failed test again, up to N times; one that then passes is reported as flaky."
    group.addoption("--opentabs-retries", type=_count, default=0, metavar="N", help=retries)
    shard = "Run only this part of the tests, such as 1/4."
    group.addoption("--opentabs-shard", type=_shard, metavar="I/N", help=shard)
    report = (
        "Write one HTML file with the tests, their calls, faults and screenshots. `opentabs "
        "report merge` combines several, such as those of a sharded suite."
    )
    group.addoption("--opentabs-report", metavar="FILE", help=report)
    parser.addini("opentabs_clock", clock, default="")
    parser.addini("opentabs_trace", trace, default="off")
    parser.addini("opentabs_record", record, default="none")
    parser.addini("opentabs_report", f"{report} Relative to pytest's root directory.", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the fixtures, after the pytest-playwright fixtures they override."""
    from opentabs_py.testing import fixtures, missing

    for name, choices in _CHOICES.items():
        if (chosen := config.getini(name)) and chosen not in choices:
            allowed = ", ".join(choices)
            raise pytest.UsageError(f"{name} = {chosen} in the ini file: use one of {allowed}")
    config.addinivalue_line(
        "markers",
        "opentabs(idle, ceiling, clock, fresh_profile, allow_breaches, faults_seed, signed_in, "
        "browsers, recording, replay_timing): options of the OpenTabs chain for this test",
    )
    # From pytest-playwright's own fixture; plugin authors cannot do anything about it.
    config.addinivalue_line(
        "filterwarnings", "ignore:(?s).*'base_url' fixture:pytest.PytestDeprecationWarning"
    )
    has_playwright = config.pluginmanager.has_plugin("playwright")
    config.pluginmanager.register(fixtures if has_playwright else missing, "opentabs-fixtures")
    _register_chosen(config)
    _register_reporting(config)


def _register_reporting(config: pytest.Config) -> None:
    """Register what reports the run: to people who watch it, or else to a file, if asked for."""
    register = config.pluginmanager.register
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)  # pytest-xdist's
    if _PLAN in os.environ and worker is None:
        from opentabs_py.testing.reports.channel import open_channel
        from opentabs_py.testing.reports.watching import Watching

        watching = config.stash[REPORTING] = config.stash[WATCHING] = Watching(open_channel())
        register(watching, "opentabs-reporting")
    elif option(config, "report") and not config.getoption("collectonly"):
        from opentabs_py.testing.reports import report_file

        report_file.register(config, worker)


def _register_chosen(config: pytest.Config) -> None:
    """Register what only runs with some options need."""
    register = config.pluginmanager.register
    if config.getoption("opentabs_fuzz"):
        from opentabs_py.testing.fuzz import collecting

        register(collecting, "opentabs-fuzz")
    if os.environ.get(_STARTED_BY) == str(os.getppid()):  # not another pytest, started by a test
        from opentabs_py.testing.runs import orphan

        register(orphan, "opentabs-orphan")
    if config.getoption("opentabs_repeat"):
        from opentabs_py.testing.runs import repeats

        register(repeats, "opentabs-repeat")
    if config.getoption("opentabs_retries"):
        from opentabs_py.testing.runs import retries

        register(retries, "opentabs-retries")
    shard: Any = config.getoption("opentabs_shard")
    if shard is not None:
        from opentabs_py.testing.runs import shards

        register(shards.Sharding(*shard), "opentabs-shard")


def _positive(text: str) -> int:
    return _count(text, least=1)


def _count(text: str, *, least: int = 0) -> int:
    number = int(text)
    if number < least:
        raise ArgumentTypeError(f"must be at least {least}, not {text}")
    return number


def _shard(text: str) -> tuple[int, int]:
    from opentabs_py.core.runner.shard import parse_shard

    shard = parse_shard(text)
    if shard is None:
        raise ArgumentTypeError(f"must be I/N, such as 1/4, not {text!r}")
    return shard


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """If any tests are ours, move async tests before all others.

    Once Playwright's sync API is running, it keeps its event loop running in the main thread, so no
    other loop can run there. The other way round, both work. Which of the others begin to use it
    is not known: a test may request a fixture while it runs, as those of pytest-bdd do.
    """
    yield
    if any(map(is_ours, items)):
        items.sort(key=lambda item: not is_async(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a test whose mark is not valid, before anything starts for it."""
    if item.get_closest_marker(MARK) is not None:
        marks_of(item)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Make pytest-playwright's driver start faster, and find an ffmpeg for recording videos."""
    if fixturedef.argname != "playwright":
        return (yield)
    from opentabs_py.browser.driver import compile_cache
    from opentabs_py.browser.ffmpeg import system_ffmpeg

    with compile_cache(), pytest.MonkeyPatch.context() as environment:
        if request.config.getoption("--video", default="off") != "off":
            lending = ExitStack()
            request.config.add_cleanup(lending.close)  # the driver exits before this
            for name, value in lending.enter_context(system_ffmpeg()).items():
                environment.setenv(name, value)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a passing test if its tools broke their contracts, or its faults had no effect."""
    yield
    people = item.stash.get(PEOPLE, None)
    if people is not None:
        complaints = people.complaints(allow_breaches=marks_of(item).allow_breaches)
        if complaints:
            pytest.fail("\n".join(complaints), pytrace=False)  # no line of the test is at fault


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the calls of a failed test, and keep its trace."""
    report = yield
    if report.failed and any(text in str(report.longrepr) for text in _LOOP_RUNS):
        report.sections.append(("OpenTabs: why a loop is running", _WHY_LOOP_RUNS))
    if report.when == "setup":  # a rerun starts from scratch
        item.user_properties[:] = [each for each in item.user_properties if each[0] != _SECTION]
    people = item.stash.get(PEOPLE, None)
    if people is None:
        return report
    if report.failed and not any(name == _SECTION for name, _ in item.user_properties):
        from opentabs_py.testing.failure_report import TITLE

        text = people.failure_report(shown=str(report.longrepr))
        report.sections.append((TITLE, text))
        if why := people.explain_hangs():
            report.sections.append((_WHY_HANGS, why))
            text += f"\n\n{_WHY_HANGS}\n{why}"
        for properties in (item.user_properties, report.user_properties):
            properties.append((_SECTION, text))
    if report.when == "call" and report.passed:  # there were no soft failures or complaints either
        people.handle_passed()
    if report.failed and call.excinfo is not None:
        _show_reproduction(item, report, call.excinfo.value)
    if report.when == "teardown":
        del item.stash[PEOPLE]
        has_failed = any(name == _SECTION for name, _ in item.user_properties)
        when = option(item.config, "trace")
        if when == "on" or (when == "retain-on-failure" and has_failed):
            _write_traces(people, report)
    return report


def _write_traces(people: Any, report: pytest.TestReport) -> None:
    """Keep the calls of a test; it fails if they cannot be written."""
    from opentabs_py.errors import TraceError

    try:
        for path in people.write_traces(_TRACE_STEM):
            report.user_properties.append(("opentabs_trace", str(path)))
    except TraceError as error:
        report.outcome = "failed"
        report.longrepr = report.longrepr or str(error)


def _show_reproduction(item: pytest.Item, report: pytest.TestReport, error: BaseException) -> None:
    """Show the test that reproduces a broken contract."""
    from opentabs_py.testing.fuzz.errors import reproduction_of

    test = reproduction_of(error)
    if test is not None:
        report.sections.append((_REPRODUCTION, test))
        for properties in (item.user_properties, report.user_properties):
            properties.append(("opentabs_reproduction", test))


def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Show the broken contract that had been found when the user pressed Ctrl-C."""
    from opentabs_py.testing.fuzz.errors import reproduction_of

    error = excinfo.value.__cause__
    test = reproduction_of(error)
    if test is not None:
        # Not by pytest's terminal, which a worker of pytest-xdist does not have.
        sys.stderr.write(f"\n{error}\n\n{_REPRODUCTION}:\n\n{test}\n")


def pytest_exception_interact(
    node: pytest.Item | pytest.Collector, report: pytest.CollectReport | pytest.TestReport
) -> None:
    """Keep the browser of a failed test open if somebody is watching."""
    people = node.stash.get(PEOPLE, None)
    if people is None or not isinstance(report, pytest.TestReport):
        return
    if node.config.getoption("opentabs_ui"):
        from opentabs_py.testing.runs.pause import pause

        pause(node.config, people, report, node.config.stash.get(WATCHING, None))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Annotate the failing lines on GitHub."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from opentabs_py.testing.failure_report import annotation

    for outcome in ("failed", "error"):
        for report in terminalreporter.getreports(outcome):
            if any(name == _SECTION for name, _ in report.user_properties):
                file, line, _ = report.location
                crash = getattr(report.longrepr, "reprcrash", None)
                if crash is not None and crash.path.endswith(file):
                    line = crash.lineno - 1
                message = str(report.longrepr) if crash is None else crash.message
                # Relative to the repository's root, which may not be that of the tests.
                workspace = os.environ.get("GITHUB_WORKSPACE") or os.curdir
                path = os.path.relpath(terminalreporter.config.rootpath / file, workspace)
                text = annotation(path, (line or 0) + 1, report.nodeid, message)
                terminalreporter.write_line(text)
