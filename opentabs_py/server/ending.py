"""The end of a server: what clients wait for is answered, and nothing is begun any more."""

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Ending:
    """Ends what clients wait for, once.

    Attributes:
        has_begun: Whether the server is stopping.
    """

    def __init__(self) -> None:
        self.has_begun = False
        self._waiting: dict[object, Callable[[], None]] = {}

    @contextmanager
    def calls(self, end: Callable[[], None]) -> Generator[None]:
        """Call a function, which must not raise, if the server stops while the context is open."""
        token = object()
        self._waiting[token] = end
        try:
            yield
        finally:
            del self._waiting[token]

    def begin(self) -> None:
        """Stop: call what is there to be called."""
        self.has_begun = True
        for end in list(self._waiting.values()):
            end()
