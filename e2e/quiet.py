"""Quiet for tests that measure, while tests run beside them in other processes."""

import fcntl
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Quiet = Callable[[], AbstractContextManager[None]]
"""Gives a context in which no other test runs."""


class Turns:
    """A lock that tests share while they run, and that one which measures has for itself.

    Args:
        directory: Where all processes of the run find it.
    """

    def __init__(self, directory: Path) -> None:
        self._running = (directory / "running.lock").open("w")
        # Who wants quiet stands in the door: nobody begins before him, so that he gets it.
        self._door = (directory / "door.lock").open("w")

    @contextmanager
    def running(self) -> Generator[None]:
        """Run a test beside others."""
        fcntl.flock(self._door, fcntl.LOCK_EX)
        fcntl.flock(self._running, fcntl.LOCK_SH)
        fcntl.flock(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._running, fcntl.LOCK_UN)

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Within a test, wait until those of the others have ended; no other begins."""
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
