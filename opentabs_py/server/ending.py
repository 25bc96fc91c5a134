"""Shut a server down: answer what clients wait for, and start nothing new."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Ending:
    """Ends everything clients wait for, once.

    Attributes:
        has_begun: Whether the server is stopping.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._waiting: dict[object, Callable[[], object]] = {}

    @contextmanager
    def on_stop(self, end: Callable[[], object]) -> Generator[None]:
        """Call a function if the server stops while the context is open; it must not raise."""
        token = object()
        self._waiting[token] = end
        try:
            yield
        finally:
            del self._waiting[token]

    def begin(self) -> None:
        """Begin to stop: call all registered functions."""
        self.has_begun = True
        for end in list(self._waiting.values()):
            end()
