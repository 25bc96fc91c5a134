"""The last log records of this package, for the console."""

import logging
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

from opentabs_py.calling.plugin_log import PLUGINS
from opentabs_py.core.text import shorten

WAITING: Final = 1_000  # records that were not read yet; older ones are dropped
LONGEST: Final = 4_000  # characters
_PACKAGE: Final = "opentabs_py"
_PLUGIN: Final = f"{PLUGINS}."


class LogTail(logging.Handler):
    """Keeps log records until they are read; any thread may log."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: deque[dict[str, Any]] = deque(maxlen=WAITING)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        try:
            text = self.format(record)
        except Exception:  # noqa: BLE001 (as all handlers do: a bad format string fails nothing)
            self.handleError(record)
            return
        name = record.name
        self._waiting.append(
            {
                "time": record.created,
                "level": record.levelname.lower(),
                "plugin": name.removeprefix(_PLUGIN) if name.startswith(_PLUGIN) else None,
                "source": name.removeprefix(f"{_PACKAGE}."),
                "text": shorten(text, LONGEST),
            }
        )

    def drain(self) -> Iterator[Mapping[str, Any]]:
        """Return the records that have not been read, and forget them."""
        while self._waiting:
            yield self._waiting.popleft()

    @contextmanager
    def listening(self) -> Generator[Self]:
        """Keep what is logged while the context is open."""
        logger = logging.getLogger(_PACKAGE)
        logger.addHandler(self)
        try:
            yield self
        finally:
            logger.removeHandler(self)
