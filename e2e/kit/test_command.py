"""`opentabs test --watch` and `--ui` in a terminal, as people use them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.documents import run
from e2e.on_disk import change
from e2e.processes import alive, command_line, descendants, is_alive
from e2e.terminals import environment_of, terminal
from e2e.waiting import PATIENT

# Without a screen, the window is not drawn.
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    assert browser_type_launch_args["headless"] is False
    assert browser_type_launch_args["slow_mo"] == 20
    return {**browser_type_launch_args, "args": ["--ozone-platform=headless"]}
"""
FAILS = """
from opentabs_py.testing import expect

def test_fails(opentabs):
    opentabs.open_start_page()
    expect(opentabs.start("chat_hello", name="Ada")).to_fail()

def test_fails_again(opentabs):
    assert opentabs.plugin().status == "ready"
"""


@pytest.fixture
def chat(short_path: Path) -> Path:
    made = run(["opentabs", "new", "chat", "--js"], short_path)
    assert made.returncode == 0, made.stderr
    (short_path / "chat" / "tests" / "hello.test.js").unlink()  # without Node's part
    (short_path / "chat" / "tmp").mkdir()
    return short_path / "chat"


HANGS = """page = opentabs.open_start_page()
    print("the test hangs", flush=True)
    page.wait_for_timeout(3_600_000)"""


def test_watch_runs_again_at_each_change_and_ctrl_c_leaves_nothing(chat: Path) -> None:
    temporary = chat / "tmp"
    tool, test = chat / "src" / "tools" / "hello.js", chat / "tests" / "test_chat.py"
    with terminal(["opentabs", "test", "--watch", "-s"], chat, TMPDIR=str(temporary)) as shown:
        shown.wait_for("passed in")
        assert "first run" in shown.output
        assert "1 passed" in shown.output

        change(tool, "Hello, ", "Good morning, ")
        shown.wait_for("src/tools/hello.js changed")
        shown.wait_for("failed in")
        assert "Good morning, Ada!" in shown.output

        change(tool, '"hand"', '"hnad"')
        shown.wait_for("is not a Lucide icon")
        (chat / "report.xml").write_text("what a run may write")
        change(test, "opentabs.open_start_page()", HANGS)
        shown.wait_for("tests/test_chat.py changed")
        change(tool, '"hnad"', '"hand"')
        shown.wait_for("the test hangs")

        test.touch()
        shown.wait_for("stopping this run")
        shown.wait_for("tests/test_chat.py changed")
        shown.wait_for("the test hangs")
        children = descendants(shown.process.pid)
        assert any(is_chromium(pid) for pid in children)
        os.killpg(shown.process.pid, signal.SIGINT)
        code = shown.wait()

    assert code == 0, shown.output
    assert "report.xml" not in shown.output
    assert alive(children) == {}
    left = [each.name for each in temporary.iterdir() if not each.name.startswith("pytest-of")]
    assert left == []


@pytest.fixture
def failing(chat: Path) -> Path:
    shutil.rmtree(chat / "tests")
    (chat / "tests").mkdir()
    (chat / "tests" / "conftest.py").write_text(CONFTEST)
    (chat / "tests" / "test_it.py").write_text(FAILS)
    return chat


WAITS = """
import time
from pathlib import Path

HERE = Path(__file__).parent

def test_first():
    print("the first test waits", flush=True)
    while not (HERE / "go").exists():
        time.sleep(0.01)

def test_second():
    (HERE / "second").touch()
"""
UI = ["opentabs", "test", "--ui", "--no-open", "--slowmo=20"]


def test_ui_keeps_the_browser_open_at_a_failure_until_enter_or_ctrl_c(failing: Path) -> None:
    with terminal(UI, failing, DISPLAY=":none") as shown:
        shown.wait_for("Press Enter to continue, or Ctrl-C to stop the tests.")
        assert "expected to fail, within 5 s" in shown.output  # why, at once
        assert "test_fails_again" not in shown.output
        children = descendants(shown.process.pid)
        chromiums = {pid for pid in children if is_chromium(pid)}
        assert chromiums

        shown.type("\n")
        shown.wait_for("test_fails_again")
        shown.wait_for("Press Enter to continue")
        assert all(map(is_alive, chromiums))
        children |= descendants(shown.process.pid)
        os.killpg(shown.process.pid, signal.SIGINT)
        code = shown.wait()

    assert code == 0
    assert alive(children) == {}


def test_ui_that_is_killed_leaves_nothing_that_waits(failing: Path) -> None:
    with terminal(UI, failing, DISPLAY=":none") as shown:
        shown.wait_for("Press Enter to continue, or Ctrl-C to stop the tests.")
        children = descendants(shown.process.pid)
        shown.process.kill()
        deadline = time.monotonic() + PATIENT
        while any(map(is_alive, children)):
            assert time.monotonic() < deadline, shown.output
            time.sleep(0.1)


def test_after_a_run_is_killed_no_other_test_begins(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_it.py").write_text(WAITS)
    with terminal(["opentabs", "test", "-s"], tmp_path) as shown:
        shown.wait_for("the first test waits")
        [pytest_] = descendants(shown.process.pid)
        shown.process.kill()
        shown.process.wait(PATIENT)
        (tests / "go").touch()
        deadline = time.monotonic() + PATIENT
        while is_alive(pytest_):
            assert time.monotonic() < deadline, shown.output
            time.sleep(0.1)

    assert not (tests / "second").exists()


def test_no_answer_is_awaited_if_stdin_is_not_a_terminal(failing: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--opentabs-ui", "--headed", "--slowmo=20"],
        cwd=failing, env=environment_of({"DISPLAY": ":none"}), text=True, timeout=PATIENT,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert "stdin is not a terminal, so Enter cannot be pressed" in done.stdout
    assert "2 failed" in done.stdout


def test_ui_and_watch_together_are_refused_with_which_to_use(failing: Path) -> None:
    done = run([*UI, "--watch"], failing)

    assert done.returncode == 2
    assert "--ui also reruns tests at every change" in re.sub(r"[\s│]+", " ", done.stderr)


def is_chromium(pid: int) -> bool:
    return any(word.startswith("--load-extension=") for word in command_line(pid))
