"""How often Python looks for garbage while a command runs."""

import subprocess
import sys

WATCHED = """
import atexit, gc
usual = gc.get_threshold()
atexit.register(lambda: print(gc.get_threshold() == usual, gc.get_freeze_count() > 10_000))
from opentabs_py.cli import collector, main
relax = collector.expect_much
collector.expect_much = lambda: (relax(), print(gc.get_threshold() > usual))
main()
"""


def test_a_command_looks_seldom_while_it_runs_and_at_its_end_not_at_all() -> None:
    command = [sys.executable, "-c", WATCHED, "--version"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    seldom, version, at_the_end = run.stdout.splitlines()
    assert seldom == "True"
    assert version.startswith("opentabs ")
    assert at_the_end == "True True"
