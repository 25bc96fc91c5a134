"""Subscriber lists."""

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

logger = logging.getLogger(__name__)

P = ParamSpec("P")


class Listeners(Generic[P]):
    """Functions to call whenever something happens; one that fails does not affect the others.

    Args:
        what: What they listen to, for the log.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._listeners: dict[object, Callable[P, None]] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._listeners)

    def subscribe(self, listener: Callable[P, None]) -> Callable[[], None]:
        """Call a function from now on; return the function that ends this."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def notify(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every function; those that subscribe or unsubscribe during this count next time."""
        for listener in list(self._listeners.values()):
            try:
                listener(*args, **kwargs)
            except Exception:
                logger.exception("A listener to %s failed", self._what)
