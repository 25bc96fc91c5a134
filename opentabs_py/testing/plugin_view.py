"""A plugin in tests."""

from opentabs_py.core.tabs.selection import PluginStatus
from opentabs_py.session.plugins.view import PluginView
from opentabs_py.testing.thread import ServerThread

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these


class SyncPluginView:
    """A plugin and its current state; `expect(plugin)` waits until it is ready.

    Attributes:
        manifest: The plugin's manifest.
    """

    def __init__(self, view: PluginView, thread: ServerThread) -> None:
        self.manifest = view.manifest
        self._view = view
        self._thread = thread

    def __repr__(self) -> str:
        return f"<SyncPluginView {self.name} {self.status}>"

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.manifest.name

    @property
    def status(self) -> PluginStatus:
        """`ready` in a page, `unavailable` in all open pages, or `closed`: no page is open."""
        return self._thread.do(lambda: self._view.status)

    def sleep(self, seconds: float) -> None:
        """Wait for this long; page routes and events keep working.

        For this package's own use.
        """
        self._thread.sleep(seconds)
