"""Nothing that a browser starts outlives it."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from opentabs_py.browser import process
from opentabs_py.browser.process import end_browser

WAITS = "import sys; print('up', flush=True); sys.stdin.read(); print('done')"


@contextmanager
def started(*words: str) -> Generator["subprocess.Popen[bytes]"]:
    """A process with this text in its command line, which ends when its stdin is closed."""
    command = [sys.executable, "-c", WAITS, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        yield running
        assert running.stdin is not None
        running.stdin.close()


async def test_the_processes_that_a_browser_leaves_behind_are_killed(tmp_path: Path) -> None:
    with ExitStack() as stack:
        zygote = stack.enter_context(
            started("--type=zygote", f"--user-data-dir={tmp_path}/profile")
        )
        renderer = stack.enter_context(
            started(f"--type=renderer --user-data-dir={tmp_path}/profile --lang=en")
        )
        await end_browser(tmp_path)
        assert None not in (zygote.poll(), renderer.poll())


async def test_a_browser_that_hangs_is_killed(tmp_path: Path) -> None:
    with started(f"--load-extension={tmp_path}/extension") as browser:
        await end_browser(tmp_path)
        assert browser.poll() is not None


async def test_a_browser_that_is_about_to_end_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "END_WITHIN", 20)
    with started(f"--load-extension={tmp_path}/extension") as browser:
        assert browser.stdin is not None
        browser.stdin.close()
        await end_browser(tmp_path)
        assert browser.stdout is not None
        assert browser.stdout.read() == b"done\n"


async def test_another_browsers_processes_are_left_alone(tmp_path: Path) -> None:
    with started("--type=zygote", f"--user-data-dir={tmp_path}x/profile") as others:
        await end_browser(tmp_path)
        assert others.poll() is None
