"""How often Python collects garbage while a command runs, and what it does with free memory."""

import ctypes
import subprocess
import sys

import pytest

WATCHED = """
import atexit, gc
usual = gc.get_threshold()
atexit.register(lambda: print(gc.get_threshold() == usual, gc.get_freeze_count() > 10_000))
from opentabs_py.cli import collector, main
relax = collector.expect_much
collector.expect_much = lambda: (relax(), print(gc.get_threshold() > usual))
main()
"""

RELEASING = """
import psutil
from opentabs_py.cli import collector
memory = lambda: psutil.Process().memory_info().rss
blocks = [bytes(1_000) for _ in range(50_000)]
del blocks[:-1]
before = memory()
collector.release()
print((before - memory()) / 1e6)
"""

WITHOUT_FILES = """
import resource
from opentabs_py.cli import collector
resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
collector.release()
"""


def test_a_command_looks_seldom_while_it_runs_and_at_its_end_not_at_all() -> None:
    command = [sys.executable, "-c", WATCHED, "--version"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    seldom, version, at_the_end = run.stdout.splitlines()
    assert seldom == "True"
    assert version.startswith("opentabs ")
    assert at_the_end == "True True"


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="it is not glibc")
def test_free_memory_is_returned_to_the_system() -> None:
    run = subprocess.run(
        [sys.executable, "-c", RELEASING], capture_output=True, text=True, check=True
    )
    assert float(run.stdout) > 20


def test_memory_that_cannot_be_returned_for_lack_of_files_is_no_error() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_FILES], check=True)
