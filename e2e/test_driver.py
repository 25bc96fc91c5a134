"""The end of Playwright's driver is the browser's end, for everyone who waits for it."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from e2e.chain import PATIENT, PROBE, Running, Tab, wait_for_document
from e2e.processes import command_line, descendants, is_alive
from opentabs_py.config import load_settings
from opentabs_py.session import OpenTabs


def driver_in(pids: set[int]) -> int:
    """Return the one of them that is a driver."""
    [driver] = [pid for pid in pids if "run-driver" in command_line(pid)]
    return driver


@dataclass
class Apart:
    """A session with a driver of its own, in a temporary directory of its own."""

    tabs: OpenTabs
    children: set[int]
    temporary: Path

    @property
    def driver(self) -> int:
        return driver_in(self.children)

    @property
    def browser(self) -> int:
        [browser] = [
            pid
            for pid in self.children
            if f"--user-data-dir={self.tabs.extension_dir.parent}/profile" in command_line(pid)
            and not any(word.startswith("--type=") for word in command_line(pid))
        ]
        return browser

    def alive(self) -> list[int]:
        return [pid for pid in self.children if is_alive(pid)]


@pytest.fixture
async def apart(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Apart]:
    """It is left by the test, whose end the fixture does not see."""
    monkeypatch.setattr(tempfile, "tempdir", str(short_path))
    before = descendants(os.getpid())
    tabs = OpenTabs(plugins=[PROBE], settings=load_settings(port=0))
    await tabs.__aenter__()
    apart = Apart(tabs, descendants(os.getpid()) - before, short_path)
    yield apart
    for pid in apart.alive():
        os.kill(pid, signal.SIGKILL)


async def test_running_calls_end_when_the_driver_dies_as_when_the_browser_is_closed(
    site: str, apart: Apart
) -> None:
    url = f"{site}/driver"
    page = await apart.tabs.open(url)
    tab = Tab(page, (await wait_for_document(apart.tabs, url)).tab_id, apart.tabs)
    async with anyio.create_task_group() as group:
        running: Running = await tab.start(group, [{"wait": 60_000}], "orphan")
        os.kill(apart.driver, signal.SIGKILL)
        await running.wait()
        with anyio.fail_after(PATIENT):
            await apart.tabs.wait_browser_gone()
    await apart.tabs.__aexit__(None, None, None)

    assert running.error is not None
    assert running.error.detail.code == "TAB_CLOSED"


@pytest.mark.parametrize("state", ["running", "stopped"])
async def test_a_session_whose_driver_died_is_left_quietly_and_leaves_nothing(
    state: str, apart: Apart
) -> None:
    if state == "stopped":  # so that it does not notice
        os.kill(apart.browser, signal.SIGSTOP)
    os.kill(apart.driver, signal.SIGKILL)
    with anyio.fail_after(PATIENT):
        await apart.tabs.wait_browser_gone()
    await apart.tabs.__aexit__(None, None, None)
    gc.collect()  # what nobody looked at is reported now, which fails the test

    assert list(apart.temporary.iterdir()) == []
    with anyio.fail_after(PATIENT):
        while apart.alive():  # noqa: ASYNC110 (they can only be asked)
            await anyio.sleep(0.01)


@pytest.mark.parametrize("options", [(), ("--stdio",)], ids=["http", "stdio"])
def test_serve_ends_with_an_error_when_its_driver_dies(
    options: tuple[str, ...], short_path: Path
) -> None:
    command = [sys.executable, "-m", "opentabs_py", "serve", "--port", "0", *options]
    serve = subprocess.Popen(
        [*command, "--plugin", str(PROBE)],
        env={**os.environ, "TMPDIR": str(short_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with serve:
        assert serve.stderr is not None
        while "MCP at " not in serve.stderr.readline():
            assert serve.poll() is None, "it ended by itself"
        os.kill(driver_in(descendants(serve.pid)), signal.SIGKILL)
        try:
            code = serve.wait(timeout=PATIENT)
        finally:
            serve.kill()
        said = serve.stderr.read()

    assert "The browser was closed or died. Start `opentabs serve` again." in said
    assert len(said.splitlines()) == 1, said
    assert code == 3
    assert list(short_path.iterdir()) == []
