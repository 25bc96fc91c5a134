"""How the server of a test ends, without a browser."""

import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import anyio
import pytest

from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.config.settings import Settings
from opentabs_py.session.seams import Seams
from opentabs_py.testing import chain
from opentabs_py.testing.chain import Chain
from opentabs_py.testing.thread import ServerThread
from tests.waiting import PATIENT


class Session:
    """A server that starts, and fails or hangs when it is to stop."""

    hangs = False

    def __init__(self, **_: Any) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.hangs:
            await anyio.sleep_forever()
        raise RuntimeError("the server broke")


@pytest.fixture
def thread() -> Generator[ServerThread]:
    running = ServerThread()
    yield running
    running.close()


def a_started_chain(thread: ServerThread) -> Chain:
    started = Chain(thread, plugins=[], tools=[], settings=Settings())
    started._plan.set_result(cast("LaunchPlan", None))  # no browser is launched
    assert thread.wait(started._started, chain.START_WITHIN)
    return started


def test_a_server_that_fails_after_its_start_is_in_the_log(
    thread: ServerThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chain, "OpenTabs", Session)

    a_started_chain(thread).close()

    [record] = caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "the server broke"


def test_a_server_that_does_not_stop_is_in_the_log(
    thread: ServerThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chain, "OpenTabs", Session)
    monkeypatch.setattr(Session, "hangs", True)
    monkeypatch.setattr(chain, "STOP_WITHIN", 0.01)

    a_started_chain(thread).close()

    assert [record.getMessage() for record in caplog.records] == [
        "The server of a test has not stopped within 0.01 s"
    ]


@dataclass
class Plan:
    """A plan to launch a browser."""

    scratch: Path


class Launching(Session):
    """A server that launches a browser while it starts."""

    scratch: Path

    def __init__(self, *, _seams: Seams, **_: Any) -> None:
        self._seams = _seams

    async def __aenter__(self) -> Self:
        async def planned() -> Any:
            return Plan(self.scratch)

        assert self._seams.launch is not None
        async with self._seams.launch(planned):
            return self


def test_a_browser_whose_launch_is_interrupted_is_ended(
    thread: ServerThread, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(chain, "OpenTabs", Launching)
    monkeypatch.setattr(Launching, "scratch", tmp_path, raising=False)
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen([*sleep, f"--user-data-dir={tmp_path}/profile"]) as browser:
        interrupted = Chain(thread, plugins=[], tools=[], settings=Settings())
        assert thread.wait(interrupted._plan, chain.START_WITHIN)
        interrupted.close()

        browser.wait(PATIENT)  # it would live for a minute
