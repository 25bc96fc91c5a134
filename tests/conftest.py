"""Fixtures for all unit tests."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """What the package runs on in production."""
    return "asyncio"
