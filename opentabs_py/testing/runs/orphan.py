"""End a run if the `opentabs test` that started it is gone: nobody waits for the rest."""

import os

import pytest

from opentabs_py.core.runner import STARTED_BY


def is_orphan() -> bool:
    """Return whether `opentabs test` started this process and is gone."""
    parent = os.environ.get(STARTED_BY)
    return parent is not None and os.getppid() != int(parent)


def pytest_runtest_logfinish() -> None:
    """End the run after a test."""
    exit_if_orphan()


def exit_if_orphan() -> None:
    """End the run if `opentabs test` started it and is gone."""
    if is_orphan():
        pytest.exit("the process that started the tests has exited")
