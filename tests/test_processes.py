"""Whether another process runs."""

import os
import subprocess
import sys

from opentabs_py.processes import is_running


def test_this_process_runs() -> None:
    assert is_running(os.getpid())


def test_one_that_has_exited_does_not_run_though_nobody_has_waited_for_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.read()  # it closes as the process exits
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_running(child.pid)  # a zombie
    child.wait()
    child.stdout.close()
    assert not is_running(child.pid)


def test_another_user_s_runs_too() -> None:
    assert is_running(1)
