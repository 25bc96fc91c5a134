"""Side effects of starting a driver."""

import asyncio
import gc
import os
import select
import sys
from pathlib import Path

import anyio
import psutil
import pytest

from opentabs_py.browser import driver
from opentabs_py.browser.driver import NODE_CACHE, compile_cache, start_driver
from opentabs_py.errors import BrowserError
from tests.waiting import PATIENT


def test_what_node_compiles_is_kept_in_the_cache_directory_and_the_environment_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(NODE_CACHE, raising=False)
    with compile_cache():
        assert Path(os.environ[NODE_CACHE]) == tmp_path / "opentabs" / "node"
    assert NODE_CACHE not in os.environ


def test_a_cache_of_the_users_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NODE_CACHE, "/elsewhere")
    with compile_cache():
        assert os.environ[NODE_CACHE] == "/elsewhere"
    assert os.environ[NODE_CACHE] == "/elsewhere"


@pytest.mark.anyio
async def test_a_driver_that_does_not_start_in_time_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / "node"
    node.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    node.chmod(0o700)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(node))
    monkeypatch.setattr(driver, "DRIVER_WITHIN", 1.0)
    before = {*psutil.Process().children()}

    with anyio.fail_after(PATIENT), pytest.raises(BrowserError, match="did not start within 1 s"):
        await start_driver()

    with anyio.fail_after(PATIENT):
        while {*psutil.Process().children()} - before:  # noqa: ASYNC110 (no event)
            await anyio.sleep(0.01)
    gc.collect()  # unretrieved errors are reported now, which fails the test
    assert driver.MARK not in os.environ


@pytest.mark.anyio
async def test_sending_to_a_driver_that_has_just_died_is_not_an_error_of_the_event_loop() -> None:
    with anyio.fail_after(PATIENT):
        started = await start_driver()
        stdin = started._process.stdin
        assert stdin is not None
        started._process.kill()
        pipe = select.poll()
        pipe.register(stdin.transport.get_extra_info("pipe"), select.POLLERR)
        assert pipe.poll(PATIENT * 1000)  # without the event loop, which would notice
        stdin.write(b"sent too late")
        await asyncio.wait([started._gone])
        await started.stop()
        del started, stdin
    gc.collect()  # unretrieved errors are reported now, which fails the test
