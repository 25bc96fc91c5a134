"""How the server of a test ends, without a browser."""

from collections.abc import Generator
from typing import Any, Self, cast

import anyio
import pytest

from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.config.settings import Settings
from opentabs_py.testing import chain
from opentabs_py.testing.chain import Chain
from opentabs_py.testing.thread import ServerThread


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
