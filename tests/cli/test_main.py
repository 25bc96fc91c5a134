"""The command line before and after its commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import PATIENT

INTERRUPTED = """
import sys

class Impatient:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "MODULE":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient)
from opentabs_py.cli import main
main()
"""


@pytest.mark.parametrize("module", ["opentabs_py.cli.app", "opentabs_py.errors"])
def test_ctrl_c_while_the_commands_are_loaded_ends_it_without_a_word(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED.replace("MODULE", module)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


SWALLOWED = """
import os, signal, sys

class Deaf:
    def __del__(self):  # what is raised here is ignored, as in some of what libraries load
        os.kill(os.getpid(), signal.SIGINT)

class Impatient:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "MODULE":
            Deaf()

sys.meta_path.insert(0, Impatient)
from opentabs_py.cli import main
main()
"""


@pytest.mark.parametrize("module", ["opentabs_py.cli.app", "opentabs_py.config.settings"])
def test_ctrl_c_ends_a_command_that_is_loading_where_an_exception_would_be_ignored(
    module: str,
) -> None:
    command = [sys.executable, "-c", SWALLOWED.replace("MODULE", module), "demo"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


# As in a server in the background, whose log has both streams.
FULL = """
import errno, io, sys

class Full:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "opentabs_py.cli.app":
            raise OSError(errno.ENOSPC, "No space left on device", "/full/file")

sys.meta_path.insert(0, Full)
from opentabs_py.cli import main
sys.stdout = io.StringIO()
main()
"""


def test_a_full_disk_is_an_error_that_says_so_where_the_output_is_not_a_file() -> None:
    command = [sys.executable, "-c", FULL]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    said = "error: Cannot write to /full/file: No space left on device. Free some space there.\n"
    assert (run.returncode, run.stderr) == (3, said)


TWO = """
from opentabs_py import tool


@tool
def two() -> int:
    return 2
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_call_succeeds_while_standard_streams_are_closed(closed: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TWO)
    opentabs = Path(sys.executable).with_name("opentabs")
    run = subprocess.run(
        ["sh", "-c", f"exec {opentabs} call two --tools tools.py {closed}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == ("" if ">&-" in closed.split() else "2\n")


@pytest.mark.parametrize("command", ["--help", "tools --tools tools.py"])
def test_a_command_whose_output_is_closed_ends_with_success(command: str, tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TWO)
    opentabs = Path(sys.executable).with_name("opentabs")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        run = subprocess.run(
            [opentabs, *command.split()],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert (run.returncode, run.stderr) == (0, "")


def test_output_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text(
        "from opentabs_py import tool\n@tool\ndef say(text: str) -> str:\n    return text\n"
    )
    call = ["call", "say", '{"text": "\\u2713 \\u00e9"}', "--tools", str(tools)]
    run = subprocess.run(
        [sys.executable, "-m", "opentabs_py", *call],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (0, "\u2713 \u00e9\n".encode())


PRINTING = """
import sys
from opentabs_py import cli
from opentabs_py.cli import run, terminal

async def command():
    terminal.out.print("a line")
    return 0

cli._run = lambda: sys.exit(run.run(command))
cli.main()
"""


def test_a_command_whose_output_is_closed_while_tasks_run_ends_with_success() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        run = subprocess.run(
            [sys.executable, "-c", PRINTING],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("command", ["tools", "start", "build"])
def test_a_command_in_a_directory_that_was_deleted_says_so(command: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    opentabs = Path(sys.executable).with_name("opentabs")
    run = subprocess.run(
        ["sh", "-c", f"rmdir ../gone && exec {opentabs} {command}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=gone,
    )
    said = "error: The current directory no longer exists. Change to another one.\n"
    assert (run.returncode, run.stderr) == (2, said)


@pytest.mark.parametrize("command", ["start", "stop", "logs", "ui", "audit", "stats"])
def test_a_command_that_may_not_open_its_files_says_so(command: str, tmp_path: Path) -> None:
    (tmp_path / "opentabs").mkdir(mode=0)
    opentabs = Path(sys.executable).with_name("opentabs")
    # Root may open every file, unless it starts a program without that right.
    restrict = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
    run = subprocess.run(
        [*(restrict if os.geteuid() == 0 else []), opentabs, command],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
    )
    assert run.returncode == 2, run.stderr
    said = f"error: Cannot open {tmp_path}/opentabs/[^ ]+: Permission denied. If opentabs once ran "
    assert re.match(said, run.stderr)


@pytest.mark.parametrize("command", [["serve", "--name", "work"], ["serve"], ["start"]])
def test_a_lock_file_that_is_a_link_is_an_error_that_names_it(
    command: list[str], tmp_path: Path
) -> None:
    name = command[-1] if "--name" in command else "default"
    link = tmp_path / "opentabs" / "servers" / f"{name}.lock"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere")

    run = subprocess.run(
        [Path(sys.executable).with_name("opentabs"), *command, "--browser", "none", "--port", "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENT,
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "COLUMNS": "400"},
    )

    assert run.returncode != 0
    assert f"error: Cannot open {link}: it is a symbolic link. Remove it" in run.stderr
    assert "Traceback" not in run.stderr
    assert not (tmp_path / "elsewhere").exists()


WITHOUT_THREADS = """
import threading
threading.stack_size(1 << 50)  # more than there can be, so that no thread starts
from opentabs_py.cli import main
main()
"""


def test_a_server_that_may_start_no_thread_names_the_limits(tmp_path: Path) -> None:
    serve = ["serve", "--browser", "none", "--port", "0"]
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_THREADS, *serve],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENT,
        cwd=tmp_path,
    )
    assert run.returncode == 3, run.stderr
    assert "error: Cannot start a thread: too many processes" in run.stderr
    assert "Traceback" not in run.stderr
