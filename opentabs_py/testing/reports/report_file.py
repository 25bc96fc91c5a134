"""`--opentabs-report FILE`: writes the report of a run, however the run ends.

Each process that runs tests writes what happens to a directory, and pytest's own process makes the
report from it at the end. If that process dies, another one, which waits for nothing else, does.
"""

import os
import platform
import secrets
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

from opentabs_py import __version__
from opentabs_py.calling.clock import wall_clock
from opentabs_py.config.paths import absolute
from opentabs_py.core.runner.report import Run
from opentabs_py.errors import ReportError
from opentabs_py.plugins.load import find_plugin
from opentabs_py.runner import report_guard
from opentabs_py.runner.report import Begun, check_place, finish
from opentabs_py.runner.spool import SpoolWriter, prepare, remove
from opentabs_py.testing.item_options import option
from opentabs_py.testing.notes import ScreenshotStore
from opentabs_py.testing.reports.reporting import Reporting
from opentabs_py.testing.reports.spooling import spool

GUARD_WITHIN: Final = 10.0  # s; it only has to exit
INTERRUPTED: Final = "It was interrupted."
_DIRECTORY: Final = "opentabs_report"  # in the input of pytest-xdist's workers
_MAIN: Final = "main"
_UNKNOWN: Final = "???"  # the phase in which a worker of pytest-xdist died
_SEEDS: Final = {
    "--opentabs-faults-seed": "opentabs_faults_seed",
    "--opentabs-fuzz-seed": "opentabs_fuzz_seed",
    "-p randomly": "randomly_seed",
}


def register(config: pytest.Config, worker: Mapping[str, Any] | None) -> None:
    """Report the run from now on.

    Args:
        config: pytest's.
        worker: The input of pytest-xdist for this process; None in pytest's own.

    Raises:
        pytest.UsageError: The report cannot be written.
    """
    if worker is not None:
        if _DIRECTORY in worker:
            spool(config, Path(worker[_DIRECTORY]), worker["workerid"])
        return
    given: str | None = config.getoption("opentabs_report")
    base = config.invocation_params.dir if given else config.rootpath
    file = base / Path(option(config, "report")).expanduser()
    try:
        check_place(file)
    except ReportError as error:
        raise pytest.UsageError(f"--opentabs-report: {error}") from None
    config.pluginmanager.register(ReportFile(file), "opentabs-report-file")


class ReportFile:
    """Writes the report of a run.

    Args:
        file: The report.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._directory: Path | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._crashes: Reporting | None = None
        self._why = ""
        self._lines: list[tuple[str, bool]] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Begin to report."""
        config = session.config
        self._directory = Path(mkdtemp(prefix="opentabs-report-"))
        begun = Begun(run=_run(config), file=str(self._file.absolute()))
        prepare(self._directory, begun.model_dump_json())
        capture: Any = config.pluginmanager.getplugin("capturemanager")
        # The terminal is ours again when pytest has died.
        with nullcontext() if capture is None else capture.global_and_fixture_disabled():
            self._guard = _start_guard(self._directory)
        if config.pluginmanager.hasplugin("dsession"):  # pytest-xdist's: workers run the tests
            writer = SpoolWriter(self._directory, _MAIN)
            config.add_cleanup(writer.close)
            self._crashes = Reporting(writer.send, ScreenshotStore(self._directory, iter(()), 0))
        else:
            spool(config, self._directory, _MAIN)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker of pytest-xdist the place to report to."""
        node.workerinput[_DIRECTORY] = str(self._directory)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Report a test in which a worker died: it cannot do so itself."""
        when: Any = report.when
        if self._crashes is not None and when == _UNKNOWN:
            self._crashes.pytest_runtest_logreport(report)
            self._crashes.pytest_runtest_logfinish(report.nodeid)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note why the run was stopped."""
        self._why = str(excinfo.value) or INTERRUPTED

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note why pytest failed."""
        self._why = f"pytest failed: {excinfo.exconly()}"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report."""
        if self._directory is None:
            return
        directory, self._directory = self._directory, None
        why = self._why or str(session.shouldfail or session.shouldstop or "")
        try:
            file = finish(directory, why, exit_code=session.exitstatus)
            self._lines.append((f"report: {file}", False))
        except ReportError as error:
            self._lines.append((str(error), True))
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        self._dismiss_guard()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print where the report is."""
        for line, is_error in self._lines:
            terminalreporter.write_sep("-", line, red=is_error)

    def pytest_unconfigure(self) -> None:
        """Write nothing if the run did not begin."""
        if self._directory is not None:
            remove(self._directory)
            self._dismiss_guard()

    def _dismiss_guard(self) -> None:
        if self._guard is None:
            return
        guard, self._guard = self._guard, None
        with suppress(OSError, subprocess.TimeoutExpired):
            guard.communicate(report_guard.DONE, timeout=GUARD_WITHIN)


def _start_guard(directory: Path) -> subprocess.Popen[bytes]:
    held = os.environ.pop(report_guard.HELD, None)  # processes that tests start do not hold it
    sockets = [] if held is None else [int(held)]
    guard = subprocess.Popen(
        [sys.executable, "-P", "-m", report_guard.__name__, str(directory)],
        stdin=subprocess.PIPE,
        start_new_session=True,
        pass_fds=sockets,
    )
    for each in sockets:
        os.close(each)
    return guard


def find_tested(chosen: Iterable[str], invoked_in: Path, root: Path) -> Path:
    """Return the directory after which a report is named.

    It is that of the plugin which contains all tests, and otherwise pytest's root directory.

    Args:
        chosen: The paths and ids of tests that pytest was given.
        invoked_in: The directory that they are relative to.
        root: pytest's root directory.
    """
    places = [absolute(invoked_in / each.partition("::")[0]) for each in chosen]
    try:
        shared = Path(os.path.commonpath(places))
    except ValueError:  # there are none, or they are on several drives
        return root
    return find_plugin(shared) or root


def _run(config: pytest.Config) -> Run:
    """Return what is known of a run when it begins."""
    seeds = {name: config.getoption(where, default=None) for name, where in _SEEDS.items()}
    if not config.getoption("opentabs_fuzz"):
        del seeds["--opentabs-fuzz-seed"]
    shard: tuple[int, int] | None = config.getoption("opentabs_shard")
    processes: Any = config.getoption("tx", default=None)
    return Run(
        id=secrets.token_hex(8),
        started=wall_clock(),
        versions={
            "OpenTabs": __version__,
            "Python": platform.python_version(),
            "pytest": pytest.__version__,
            "Playwright": version("playwright"),
        },
        platform=platform.platform(terse=True),
        directory=find_tested(config.args, config.invocation_params.dir, config.rootpath).name,
        arguments=tuple(map(str, config.invocation_params.args)),
        seeds={name: seed for name, seed in seeds.items() if isinstance(seed, int)},
        shard=shard,
        workers=len(processes or ()),
    )
