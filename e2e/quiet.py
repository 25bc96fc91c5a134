"""Quiet for tests that measure, while tests run beside them in other processes."""

import fcntl
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Quiet = Callable[[], AbstractContextManager[None]]
"""Returns a context in which no other test runs."""


class Turns:
    """A lock that tests share while they run, and that a test which measures holds exclusively.

    Args:
        directory: Where all processes of the run find it.
    """

    def __init__(self, directory: Path) -> None:
        self._running = (directory / "running.lock").open("w")
        # A test that needs quiet holds the door, so that no other test starts before it.
        self._door = (directory / "door.lock").open("w")

    @contextmanager
    def running(self) -> Generator[None]:
        """Run a test in parallel with others."""
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._running, fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Within a test, wait until all other tests have ended; no other starts meanwhile."""
        fcntl.flock(self._running, fcntl.LOCK_UN)
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._running, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_SH)
            fcntl.flock(self._door, fcntl.LOCK_UN)

    def close(self) -> None:
        self._running.close()
        self._door.close()
