"""Limit log messages that anyone who can connect could repeat endlessly."""

import asyncio
import logging
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from opentabs_py.core.text import quantity

PERIOD = 60.0  # s


class Repeats(logging.Filter):
    """Lets each warning through once per period, then logs how many similar ones followed.

    Warnings are similar if they have the same text before formatting. Errors, and everything
    logged outside an event loop, pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._more: Counter[tuple[str, int, str]] = Counter()
        self._timers: dict[tuple[str, int, str], tuple[asyncio.TimerHandle, str]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        if record.levelno > logging.WARNING or hasattr(record, "is_summary"):
            return True
        key = record.name, record.levelno, str(record.msg)
        if key in self._timers:
            self._more[key] += 1
            return False
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return True
        timer = loop.call_later(PERIOD, self._summarize, key)
        self._timers[key] = timer, record.getMessage()
        return True

    def end(self) -> None:
        """Log how many warnings were suppressed, and suppress no more."""
        for key, (timer, _) in list(self._timers.items()):
            timer.cancel()
            self._summarize(key)

    def _summarize(self, key: tuple[str, int, str]) -> None:
        _, first = self._timers.pop(key)
        name, level, _ = key
        if more := self._more.pop(key, 0):
            logger = logging.getLogger(name)
            text = "Suppressed %s like this: %s"
            count = quantity(more, "more message")
            logger.log(level, text, count, first, extra={"is_summary": True})


@contextmanager
def repeats_suppressed(*names: str) -> Generator[None]:
    """Suppress and count repeated warnings of these loggers while the context is open."""
    repeats = Repeats()
    loggers = [logging.getLogger(name) for name in names]
    for logger in loggers:
        logger.addFilter(repeats)
    try:
        yield
    finally:
        repeats.end()
        for logger in loggers:
            logger.removeFilter(repeats)
