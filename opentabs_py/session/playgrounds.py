"""The pages to try plugins on: their `playground/`, each served on a port of its own."""

from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.plugins.load import playground
from opentabs_py.plugins.plugin import Plugin
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_directory


class Playgrounds:
    """Serves playgrounds, each from when its URL is first wanted.

    Args:
        tasks: Tasks that run as long as the session.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._urls: dict[Path, str] = {}
        self._starting = anyio.Lock()
        self._stops: list[Callable[[], None]] = []

    async def url_of(self, plugin: Plugin) -> str | None:
        """Return the URL of a plugin's playground; None if it has none or does not work there."""
        directory = playground(plugin.directory)
        # Any port will do, because patterns without a port match all ports.
        patterns = [parse_match_pattern(each) for each in plugin.manifest.url_patterns]
        if directory is None or not any(each.matches("http://127.0.0.1/") for each in patterns):
            return None
        async with self._starting:
            if directory not in self._urls:
                listener = bind("127.0.0.1", 0)
                # In a task of the session, because the caller's task may end.
                self._stops.append(await self._tasks.start(serve_directory, directory, listener))
                self._urls[directory] = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        return self._urls[directory]

    def stop(self) -> None:
        """Begin to stop all of them."""
        for stop in self._stops:
            stop()
