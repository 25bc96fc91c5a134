"""Fixtures for all unit tests."""

import signal

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs that tests start, also under `nohup` and in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def anyio_backend() -> str:
    """The backend the package uses in production."""
    return "asyncio"
