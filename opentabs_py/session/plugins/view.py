"""What the users of a session see of a plugin."""

from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.tabs.browsers import JoinedTabs
from opentabs_py.core.tabs.selection import PluginStatus, Tabs


class PluginView:
    """A plugin and its state in the open pages.

    Attributes:
        manifest: The plugin's manifest.
    """

    def __init__(self, manifest: PluginManifest, tabs: Tabs | JoinedTabs) -> None:
        self.manifest = manifest
        self._tabs = tabs

    def __repr__(self) -> str:
        return f"<PluginView {self.name} {self.status}>"

    @property
    def name(self) -> str:
        """The plugin's name."""
        return self.manifest.name

    @property
    def status(self) -> PluginStatus:
        """`ready` in some page, `unavailable` in all open ones, or `closed` if none is open."""
        return self._tabs.status(self.name)
