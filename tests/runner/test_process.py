"""Programs that run tests, and how they are stopped."""

import subprocess
import sys
from typing import Any, cast

import pytest

from opentabs_py.runner.process import _stop


class Ended:
    """A program that has ended, of which its owner has not been told yet."""

    returncode: int | None = None

    def __init__(self) -> None:
        with subprocess.Popen([sys.executable, "-c", ""], start_new_session=True) as program:
            self.pid = program.pid

    async def wait(self) -> int:
        self.returncode = 0
        return 0


@pytest.mark.anyio
async def test_a_program_that_ends_just_before_it_is_stopped_has_stopped() -> None:
    ended = Ended()

    await _stop(cast(Any, ended))

    assert ended.returncode == 0
