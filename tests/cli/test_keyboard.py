"""Waiting for Enter, in a pseudoterminal."""

import os
import subprocess
import sys

import pytest

from tests.waiting import PATIENT

WAITS = "import asyncio; from opentabs_py.cli.keyboard import wait_enter; asyncio.run(wait_enter())"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudoterminals.")
@pytest.mark.parametrize("keys", [b"x\n", b"\x04"], ids=["Enter", "Ctrl-D"])
def test_enter_and_ctrl_d_end_the_wait(keys: bytes) -> None:
    ours, its = os.openpty()
    with subprocess.Popen([sys.executable, "-c", WAITS], stdin=its) as process:
        try:
            os.write(ours, keys)
            assert process.wait(PATIENT) == 0
        finally:
            process.kill()
    os.close(ours)
    os.close(its)
