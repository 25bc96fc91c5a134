"""The pytest plugin; every run of pytest imports this, so it imports next to nothing."""

import inspect
import os
from collections.abc import Generator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from opentabs_py.testing.marks import Clock, Marks
    from opentabs_py.testing.turn import Turn

MARK = "opentabs"
TURN: "pytest.StashKey[Turn]" = pytest.StashKey()
_SECTION = "opentabs_report"  # a property of reports that have the section, and junit's
_TRACE_FILE = "opentabs.trace"
# What asyncio says, and anyio.
_LOOP_RUNS = ("cannot be called from a running event loop", "Already running asyncio")
_WHY_LOOP_RUNS = """\
Playwright's sync API, which a test before this one used, keeps its event loop running in this
thread, and no other can run there. Tests that are written with `async def` run before those. Put
fixtures that await, and are wider than one test, into a module that has only such tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the test kit; each can be set in the ini file too."""
    group = parser.getgroup("opentabs", "OpenTabs")
    clock = (
        "What the timers of calls run on. real: time itself, whatever tests are marked with; "
        "manual: clock.advance(), where a test is not marked. Default: as marked, or real."
    )
    trace = "Write the calls of each test to a trace file. Default: off."
    seed = (
        "Seed of what opentabs.faults leaves to chance, whatever tests are marked with. Default: 0."
    )
    group.addoption("--opentabs-clock", choices=["real", "manual"], help=clock)
    group.addoption("--opentabs-trace", choices=["on", "off", "retain-on-failure"], help=trace)
    ui = (
        "Keep the browser open at a failure, until Enter is pressed or its window is closed; "
        "`opentabs test --ui` sets it."
    )
    group.addoption("--opentabs-ui", action="store_true", help=ui)
    group.addoption("--opentabs-faults-seed", type=int, metavar="N", help=seed)
    parser.addini("opentabs_clock", clock, default="")
    parser.addini("opentabs_trace", trace, default="off")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, and the fixtures after those of pytest-playwright that they override."""
    from opentabs_py.testing import fixtures, missing  # noqa: PLC0415

    config.addinivalue_line(
        "markers",
        "opentabs(idle, ceiling, clock, fresh_profile, allow_breaches, faults_seed): what this "
        "test wants otherwise of the running OpenTabs chain",
    )
    # Of pytest-playwright's own fixture; who tests a plugin can do nothing about it.
    config.addinivalue_line(
        "filterwarnings", "ignore:(?s).*'base_url' fixture:pytest.PytestDeprecationWarning"
    )
    has_playwright = config.pluginmanager.has_plugin("playwright")
    config.pluginmanager.register(fixtures if has_playwright else missing, "opentabs-fixtures")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Refuse marks that say what no mark can say; put tests that await before ours that do not.

    Once Playwright's sync API runs, it keeps its event loop running in the main thread, and no
    other can run there. The other way round both work.
    """
    for item in items:
        if item.get_closest_marker(MARK) is not None:
            marks_of(item)
    yield
    ours = [index for index, item in enumerate(items) if _is_ours(item)]
    if ours:
        items[ours[0] :] = sorted(items[ours[0] :], key=lambda item: not is_async(item))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, Any, Any]:
    """Have pytest-playwright's driver start sooner, and find what it records videos with."""
    if fixturedef.argname != "playwright":
        return (yield)
    from opentabs_py.browser.driver import compile_cache  # noqa: PLC0415
    from opentabs_py.browser.ffmpeg import lend_ffmpeg  # noqa: PLC0415

    with compile_cache(), pytest.MonkeyPatch.context() as environment:
        if request.config.getoption("--video", default="off") != "off":
            lending = ExitStack()
            request.config.add_cleanup(lending.close)  # the driver ends before
            for name, value in lending.enter_context(lend_ffmpeg()).items():
                environment.setenv(name, value)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test that passed while its tools broke their contracts, or its faults did nothing."""
    yield
    turn = item.stash.get(TURN, None)
    if turn is not None:
        complaints = turn.complaints(allow_breaches=marks_of(item).allow_breaches)
        if complaints:
            pytest.fail("\n".join(complaints), pytrace=False)  # no line of the test is to blame


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the calls of a test that failed, and keep its trace."""
    report = yield
    if report.failed and any(text in str(report.longrepr) for text in _LOOP_RUNS):
        report.sections.append(("OpenTabs: why a loop is running", _WHY_LOOP_RUNS))
    if report.when == "setup":  # a test that is run again begins anew
        item.user_properties[:] = [each for each in item.user_properties if each[0] != _SECTION]
    turn = item.stash.get(TURN, None)
    if turn is None:
        return report
    if report.failed and not any(name == _SECTION for name, _ in item.user_properties):
        from opentabs_py.testing.report import TITLE  # noqa: PLC0415

        text = turn.failure_report(told=str(report.longrepr))
        report.sections.append((TITLE, text))
        for properties in (item.user_properties, report.user_properties):
            properties.append((_SECTION, text))
    if report.when == "teardown":
        del item.stash[TURN]
        has_failed = any(name == _SECTION for name, _ in item.user_properties)
        when = _option(item.config, "trace")
        if when == "on" or (when == "retain-on-failure" and has_failed):
            path = turn.write_trace(_TRACE_FILE)
            report.user_properties.append(("opentabs_trace", str(path)))
    return report


def pytest_exception_interact(
    node: pytest.Item | pytest.Collector, report: pytest.CollectReport | pytest.TestReport
) -> None:
    """Keep the browser of a test that failed, when somebody watches it."""
    turn = node.stash.get(TURN, None)
    if turn is not None and node.config.getoption("opentabs_ui"):
        from opentabs_py.testing.pause import pause  # noqa: PLC0415

        pause(node.config, turn, report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Mark the lines that failed, for GitHub."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    from opentabs_py.testing.report import annotation  # noqa: PLC0415

    for outcome in ("failed", "error"):
        for report in terminalreporter.getreports(outcome):
            if any(name == _SECTION for name, _ in report.user_properties):
                file, line, _ = report.location
                crash = getattr(report.longrepr, "reprcrash", None)
                if crash is not None and crash.path.endswith(file):
                    line = crash.lineno - 1
                message = str(report.longrepr) if crash is None else crash.message
                # From the root of the repository, which need not be that of the tests.
                workspace = os.environ.get("GITHUB_WORKSPACE") or os.curdir
                path = os.path.relpath(terminalreporter.config.rootpath / file, workspace)
                text = annotation(path, (line or 0) + 1, report.nodeid, message)
                terminalreporter.write_line(text)


def marks_of(item: pytest.Item) -> "Marks":
    """Read the marks of a test.

    Raises:
        pytest.UsageError: One says what no mark can say.
    """
    from opentabs_py.testing.marks import read_marks  # noqa: PLC0415

    try:
        return read_marks((mark.args, mark.kwargs) for mark in item.iter_markers(MARK))
    except ValueError as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from None


def clock_of(item: pytest.Item) -> "Clock | None":
    """Return what the timers of a test's calls run on, where the test or the run says it."""
    option = _option(item.config, "clock")
    if option == "real":
        return "real"
    return marks_of(item).clock or ("manual" if option == "manual" else None)


def faults_seed_of(item: pytest.Item) -> int:
    """Give the seed of what a test's faults leave to chance."""
    option: int | None = item.config.getoption("opentabs_faults_seed")
    return marks_of(item).faults_seed if option is None else option


def is_async(item: object) -> bool:
    """Tell whether a test awaits."""
    return inspect.iscoroutinefunction(getattr(item, "obj", None))


def uses_opentabs(request: pytest.FixtureRequest) -> bool:
    """Tell whether a test is one of ours: a fixture of it is `opentabs`, or it is marked."""
    return "opentabs" in request.fixturenames or request.node.get_closest_marker(MARK) is not None


def _is_ours(item: pytest.Item) -> bool:
    return "opentabs" in getattr(item, "fixturenames", ()) and not is_async(item)


def _option(config: pytest.Config, name: str) -> str:
    given: str | None = config.getoption(f"opentabs_{name}")
    ini: str = config.getini(f"opentabs_{name}")
    return given or ini
