"""What plugins log in their pages, in the log of this process."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

import anyio.to_thread
from anyio.abc import TaskGroup

from opentabs_py.calling.plugin_log import plugin_logger
from opentabs_py.core.protocol import LogEntry, LogParams
from opentabs_py.core.text import visible

_LEVELS: Final = logging.getLevelNamesMapping()
_ADAPTER: Final = "chrome-extension://"  # begins every position in an adapter


class PluginLogs:
    """Logs what plugins log, with the lines of their source where the page named the adapter.

    Args:
        tasks: Tasks that run as long as the session.
        read_positions: Maps the positions in a text to the plugins' sources. It may read files,
            so it runs in a thread.
    """

    def __init__(self, tasks: TaskGroup, read_positions: Callable[[str], str]) -> None:
        self._tasks = tasks
        self._read_positions = read_positions
        self._waiting: deque[tuple[str, LogEntry]] = deque()  # with the plugins that logged them

    def handle(self, params: LogParams) -> None:
        """Log the records of a plugin, after those that were handled before."""
        for entry in params.entries:
            if self._waiting or _ADAPTER in entry.message:
                self._waiting.append((params.plugin, entry))
                if len(self._waiting) == 1:
                    self._tasks.start_soon(self._drain)
            else:
                _log(params.plugin, entry.level, entry.message)
        if params.dropped:
            plugin_logger(params.plugin).warning(
                "%s: dropped %d log records, which came too fast", params.plugin, params.dropped
            )

    async def _drain(self) -> None:
        try:
            while self._waiting:
                plugin, entry = self._waiting[0]
                text = entry.message
                if _ADAPTER in text:
                    text = await anyio.to_thread.run_sync(self._read_positions, text)
                del self._waiting[0]
                _log(plugin, entry.level, text)
        finally:  # the session ends
            while self._waiting:
                plugin, entry = self._waiting.popleft()
                _log(plugin, entry.level, entry.message)


def _log(plugin: str, level: str, text: str) -> None:
    # A page wrote it, so no control character may reach a terminal.
    plugin_logger(plugin).log(_LEVELS[level.upper()], "%s: %s", plugin, visible(text))
