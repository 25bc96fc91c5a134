"""Runs of real tests without a browser: what runs, what stops, and what is known about it."""

import sys
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from opentabs_py.errors import BuildError
from opentabs_py.runner.runner import BuildProblem, Runner, Suite
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

TWO = "def test_one(): pass\ndef test_two(): assert not 'this'\n"
HANGS = "import time\ndef test_hangs():\n    print('x')\n    time.sleep(3600)\n"


class Builds:
    """A build that ends as the test requests, or hangs until it is cancelled."""

    def __init__(self) -> None:
        self.count = 0
        self.hangs = False
        self.begun = anyio.Event()
        self.problems: list[BuildProblem] = []
        self.error: BuildError | None = None

    async def __call__(self) -> Sequence[BuildProblem]:
        await anyio.lowlevel.checkpoint()
        self.count += 1
        if self.hangs:
            self.begun.set()
            await anyio.sleep_forever()
        if self.error is not None:
            raise self.error
        return self.problems


@pytest.fixture
def builds() -> Builds:
    return Builds()


@pytest.fixture
def suite(tmp_path: Path, builds: Builds) -> Suite:
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Suite(
        directory=tmp_path,
        paths=[str(tmp_path / "tests")],
        pytest_args=[
            "--rootdir",
            str(tmp_path),
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
        ],
        units=list,
        unit_command=lambda file: [sys.executable, file],
        build=builds,
        headed=False,
        terminal=False,
    )


def write(suite: Suite, **tests: str) -> None:
    for name, text in tests.items():
        (suite.directory / "tests" / f"test_{name}.py").write_text(text)


@asynccontextmanager
async def running(suite: Suite) -> AsyncGenerator[Runner]:
    scratch = suite.directory / "scratch"
    scratch.mkdir()
    runner = Runner(suite, scratch)
    with anyio.fail_after(2 * PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runner.run)
            yield runner
            tasks.cancel_scope.cancel()


async def until(runner: Runner, is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENT):
        while not is_true():
            await runner.changed().wait()


def status(runner: Runner) -> dict[str, object]:
    update = runner.board.since(0)
    assert update is not None
    [row] = update["status"]["changed"]
    return dict(row)


async def ended(runner: Runner) -> None:
    """Wait for the end of the current or next run."""
    await until(runner, lambda: status(runner)["state"] != "idle")
    await until(runner, lambda: status(runner)["state"] == "idle")


def states(runner: Runner) -> dict[str, str]:
    return {test.name or test.file: test.state for test in runner.board.tests.values()}


async def test_everything_runs_at_first_and_then_what_is_asked_for(suite: Suite) -> None:
    write(suite, a=TWO)
    async with running(suite) as runner:
        await ended(runner)
        assert states(runner) == {"test_one": "passed", "test_two": "failed"}
        assert (
            runner.board.tests["tests/test_a.py::test_two"].now.why
            == "AssertionError: assert not 'this'"
        )
        write(suite, a=TWO.replace("pass", "1 / 0"))
        runner.run_tests(runner.board.failed)
        await ended(runner)
        assert states(runner) == {"test_one": "passed", "test_two": "failed"}
        runner.run_tests(None)
        await ended(runner)
        assert states(runner) == {"test_one": "failed", "test_two": "failed"}


async def test_a_change_stops_the_run_and_the_tests_that_had_not_run_yet_run_too(
    suite: Suite, builds: Builds
) -> None:
    write(suite, a=HANGS, b=TWO)
    async with running(suite) as runner:
        await until(runner, lambda: states(runner).get("test_hangs") == "running")
        write(suite, a="def test_hangs(): pass\n")
        runner.handle_change(["tests/test_a.py"], "tests/test_a.py changed")
        await until(runner, lambda: states(runner).get("test_two") == "failed")
        await until(runner, lambda: status(runner)["state"] == "idle")
        assert states(runner) == {
            "test_hangs": "passed",
            "test_one": "passed",
            "test_two": "failed",
        }
        assert status(runner)["why"] == "tests/test_a.py changed"
        assert builds.count == 2

        runner.handle_change(["tests/test_a.py"], "")
        await ended(runner)
        assert states(runner)["test_hangs"] == "passed"


async def test_a_change_runs_nothing_if_that_is_turned_off_and_is_built_later(
    suite: Suite, builds: Builds
) -> None:
    write(suite, a=TWO)
    async with running(suite) as runner:
        await ended(runner)
        runner.run_tests(("tests/test_a.py::test_one",))
        await ended(runner)
        assert builds.count == 1  # nothing has changed
        runner.set_watches(False)
        runner.handle_change(["src/index.ts"], "")
        assert status(runner)["state"] == "idle"
        runner.run_tests(None)
        await ended(runner)
        assert builds.count == 2


async def test_a_build_that_was_stopped_is_made_by_the_next_run(
    suite: Suite, builds: Builds
) -> None:
    write(suite, a=TWO)
    builds.hangs = True
    async with running(suite) as runner:
        await builds.begun.wait()
        builds.hangs = False
        runner.run_tests(("tests/test_a.py::test_one",))
        await until(runner, lambda: states(runner).get("test_one") == "passed")
        assert builds.count == 2


@pytest.mark.parametrize("how", ["problem", "error"])
async def test_nothing_runs_before_the_plugin_is_built(
    suite: Suite, builds: Builds, how: str
) -> None:
    write(suite, a=TWO)
    if how == "problem":
        builds.problems = [BuildProblem("src/index.ts:3", "wrong")]
    else:
        builds.error = BuildError("wrong")
    async with running(suite) as runner:
        await ended(runner)
        place = "src/index.ts:3" if how == "problem" else ""
        assert status(runner)["problems"] == [{"place": place, "why": "wrong"}]
        assert runner.board.tests == {}
        builds.problems, builds.error = [], None
        runner.run_tests(None)
        await ended(runner)
        assert states(runner) == {"test_one": "passed", "test_two": "failed"}


async def test_files_are_shown_relative_to_the_plugin_wherever_pytests_root_is(
    suite: Suite,
) -> None:
    write(suite, a=TWO, broken="import no_such_module\n")
    unit = suite.directory / "tests" / "unit.test.js"
    unit.write_text("")
    suite = replace(
        suite,
        directory=suite.directory / "tests" / "..",
        pytest_args=[*suite.pytest_args, f"--rootdir={suite.directory / 'tests'}"],
        units=lambda: [str(unit)],
    )
    async with running(suite) as runner:
        await ended(runner)
        files = {test.file for test in runner.board.tests.values()}
        assert files == {f"tests/{name}" for name in ("test_a.py", "test_broken.py", unit.name)}
        write(suite, a=TWO.replace("pass", "1 / 0"), broken="def test_fixed(): pass\n")
        runner.handle_change(["tests/test_broken.py"], "")  # so that only this file runs
        await ended(runner)
        assert (states(runner)["test_fixed"], states(runner)["test_one"]) == ("passed", "passed")


async def test_stop_ends_the_run_and_the_process(suite: Suite) -> None:
    write(suite, a=HANGS)
    async with running(suite) as runner:
        await until(runner, lambda: states(runner).get("test_hangs") == "running")
        runner.stop()
        await until(runner, lambda: status(runner)["state"] == "idle")
        assert states(runner) == {"test_hangs": "idle"}
        assert status(runner)["error"] == ""


PAUSES = """
from opentabs_py.testing.reports.run_stash import REPORTING
def test_pauses(pytestconfig):
    assert pytestconfig.stash[REPORTING].is_to_pause()
"""


async def test_a_run_that_is_about_to_start_learns_that_it_is_not_to_pause(suite: Suite) -> None:
    write(suite, a=PAUSES)
    async with running(suite) as runner:
        await ended(runner)
        assert states(runner) == {"test_pauses": "passed"}
        runner.run_tests(None)
        plan = suite.directory / "scratch" / "2" / "plan.json"
        while not plan.exists():  # a thread would notice it too late
            await anyio.lowlevel.checkpoint()
        runner.set_pauses(False)
        await ended(runner)
        assert states(runner) == {"test_pauses": "failed"}


async def test_pytest_that_dies_fails_the_test_it_was_in(suite: Suite) -> None:
    write(suite, a="import os\ndef test_dies(): os.kill(os.getpid(), 9)\ndef test_next(): pass\n")
    async with running(suite) as runner:
        await ended(runner)
        assert states(runner) == {"test_dies": "failed", "test_next": "idle"}
        assert "was ended by signal 9" in str(status(runner)["error"])


async def test_files_for_node_run_beside_pytest(suite: Suite) -> None:
    write(suite, a="def test_one(): pass\n")
    good, bad = suite.directory / "good.test.js", suite.directory / "bad.test.js"
    good.write_text("print('fine')")
    bad.write_text("raise SystemExit('x' * 10)")
    both = replace(suite, units=lambda: [str(good), str(bad)])
    async with running(both) as runner:
        await ended(runner)
        assert states(runner) == {
            "good.test.js": "passed", "bad.test.js": "failed", "test_one": "passed",
        }  # fmt: skip
        assert runner.board.tests[str(good)].now.sections == [("Output", "fine\n")]
        assert runner.board.tests[str(bad)].now.text == "xxxxxxxxxx\n"
        assert runner.board.tests[str(bad)].file == "bad.test.js"


async def test_a_file_for_node_fails_where_node_is_missing_and_the_rest_runs(suite: Suite) -> None:
    write(suite, a="def test_one(): pass\n")
    threads: list[int] = []

    def no_node(_: str) -> Sequence[str]:
        threads.append(threading.get_ident())
        raise BuildError("There is no Node.")

    without_node = replace(
        suite, units=lambda: [str(suite.directory / "a.test.js")], unit_command=no_node
    )
    async with running(without_node) as runner:
        await ended(runner)
        assert states(runner) == {"a.test.js": "failed", "test_one": "passed"}
        [unit] = [each for each in runner.board.tests.values() if each.file == "a.test.js"]
        assert unit.now.why == "There is no Node."
        assert threads != [threading.get_ident()]  # npm may take minutes


async def test_directories_of_runs_that_nothing_refers_to_are_removed(suite: Suite) -> None:
    write(suite, a=TWO)
    async with running(suite) as runner:
        for _ in range(2):
            await ended(runner)
            runner.run_tests(None)
        await ended(runner)
        assert list((suite.directory / "scratch").iterdir()) == []
