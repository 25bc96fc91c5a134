"""Fixtures for all unit tests."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable

import pytest
from hypothesis import settings

# The duration of an example depends on how busy the machine is.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C reach the programs that tests start, and hide the user's running servers."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a run under `nohup`, or with `&`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    state = tempfile.TemporaryDirectory(prefix="opentabs-test-state-")
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name
    os.environ["OPENTABS_AUDIT"] = "false"  # tests are not in the user's audit


@pytest.fixture
def anyio_backend() -> str:
    """The backend that the package uses in production."""
    return "asyncio"


@pytest.fixture
async def skip_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let so many seconds pass at once, for all timers of the event loop."""
    loop = asyncio.get_running_loop()
    real, skipped = loop.time, 0.0

    def skip_time(seconds: float) -> None:
        nonlocal skipped
        skipped += seconds

    monkeypatch.setattr(loop, "time", lambda: real() + skipped)
    return skip_time
