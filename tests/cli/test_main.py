"""The command line before and after its commands."""

import subprocess
import sys

INTERRUPTED = """
import sys

class Impatient:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "opentabs_py.cli.app":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient)
from opentabs_py.cli import main
main()
"""


def test_ctrl_c_while_the_commands_are_loaded_ends_it_without_a_word() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")
