"""Synchronize the extension's plugins: at every hello and at every change."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from opentabs_py.bridge.connection import Connection
from opentabs_py.core import protocol
from opentabs_py.core.sites.match_patterns import serves

logger = logging.getLogger(__name__)

SYNC_WITHIN = 2.0  # s; an answer takes tens of ms, but a hanging page prevents it


class PluginSync:
    """The plugins that an extension must have, and whether it has them.

    Args:
        on_change: Called when the extension has answered.

    Attributes:
        plugins: What it must have.
        problems: The plugins that it could not inject, and where.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self.plugins: Sequence[protocol.PluginSpec] = ()
        self.problems: Sequence[protocol.PluginProblem] = ()
        self._on_change = on_change
        self._answer: asyncio.Future[protocol.SyncResult | None] | None = None

    def serving(self, url: str) -> list[str]:
        """Return the plugins that work in a page."""
        return [
            each.name for each in self.plugins if serves(url, each.matches, each.exclude_matches)
        ]

    @property
    def is_done(self) -> bool:
        """Whether the extension has answered to the current list, if only with an error."""
        return self._answer is not None and self._answer.done() and not self._answer.cancelled()

    def send(self, connection: Connection) -> None:
        """Send the list; any earlier answer no longer counts."""
        params = protocol.SyncParams(plugins=list(self.plugins))
        self._answer = connection.request(
            lambda number: protocol.PluginsSync(id=number, params=params), protocol.SyncResult
        )
        self._answer.add_done_callback(self._handle)

    async def wait(self) -> None:
        """Wait until the extension has answered, or is gone, for `SYNC_WITHIN` seconds."""
        if self._answer is not None:
            await asyncio.wait([self._answer], timeout=SYNC_WITHIN)

    def _handle(self, answer: "asyncio.Future[protocol.SyncResult | None]") -> None:
        if answer is not self._answer or answer.cancelled():
            return  # a newer list is on its way, or the connection ended
        # An error was logged; even without its plugins, the extension counts as connected.
        result = answer.result()
        known = {(problem.plugin, problem.message) for problem in self.problems}
        self.problems = [] if result is None else result.problems
        for problem in self.problems:
            if (problem.plugin, problem.message) not in known:
                logger.warning("Plugin %s: %s", problem.plugin, problem.message)
        self._on_change()
