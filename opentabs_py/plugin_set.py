"""The plugins of a session: on disk, in the pages, and on the list of tools."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from opentabs_py.bridge import Bridge
from opentabs_py.browser.stage import StagedExtension
from opentabs_py.core.plugins import PluginManifest
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.sdk_version import UNKNOWN
from opentabs_py.core.tabs import Readiness
from opentabs_py.plugins.debug import read_stack
from opentabs_py.plugins.load import (
    Plugin,
    PluginChanges,
    Quarantined,
    compare_plugins,
    future_sites,
    load_plugins,
    refuse_unknown_plugins,
)
from opentabs_py.server.toolbox import Toolbox

logger = logging.getLogger(__name__)


class PluginView:
    """A plugin as it stands in the open pages.

    Attributes:
        manifest: What the plugin says about itself.
    """

    def __init__(self, manifest: PluginManifest, bridge: Bridge) -> None:
        self.manifest = manifest
        self._bridge = bridge

    def __repr__(self) -> str:
        return f"<PluginView {self.name} {self.readiness}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest.name

    @property
    def readiness(self) -> Readiness:
        """`ready` in a page, `unavailable` in those that are open, or `closed`: none is."""
        return self._bridge.tabs.readiness(self.name)


class PluginSet:
    """What was found in some directories, and is served.

    Args:
        directories: Of built plugins.
        settings: What each plugin is set to, by their names.
        to_debug: Somebody may look at them in the browser's DevTools.

    Attributes:
        plugins: Those that are served.
        quarantined: Those that are faulty.

    Raises:
        ConfigError: A setting is given to no plugin.
    """

    _bridge: Bridge
    _toolbox: Toolbox
    _staged: StagedExtension

    def __init__(
        self,
        directories: Sequence[Path],
        settings: Mapping[str, Mapping[str, Any]],
        *,
        to_debug: bool = False,
    ) -> None:
        self._directories = directories
        self._to_debug = to_debug
        self._settings = settings
        self._reloading = anyio.Lock()
        self.plugins: list[Plugin]
        self.quarantined: list[Quarantined]
        self.plugins, self.quarantined = load_plugins(directories, settings)
        refuse_unknown_plugins(settings, self.plugins, self.quarantined)
        self._warned: set[str] = set()
        self._warn(self.plugins)

    @property
    def sites(self) -> list[str]:
        """The match patterns of all sites that the extension must be let to."""
        return self._sites(self.plugins, self.quarantined)

    def _sites(self, plugins: Sequence[Plugin], quarantined: Sequence[Quarantined]) -> list[str]:
        served = [pattern for each in plugins for pattern in each.manifest.url_patterns]
        return served + future_sites(quarantined, self._settings)

    async def serve(self, bridge: Bridge, toolbox: Toolbox, staged: StagedExtension) -> None:
        """Put them into pages, and on the list of tools."""
        self._bridge, self._toolbox, self._staged = bridge, toolbox, staged
        toolbox.set_plugins(plugin.manifest for plugin in self.plugins)
        toolbox.read_stack = self._read_stack
        await bridge.sync_plugins(self._specs(self.plugins))

    def find(self, name: str) -> Plugin | None:
        """Give a plugin by its name, if it is served."""
        return next((each for each in self.plugins if each.manifest.name == name), None)

    def view(self, name: str | None) -> PluginView:
        """Give a plugin by its name; without one, the only one there is.

        Raises:
            LookupError: There is none of that name, or not one alone.
        """
        names = [each.manifest.name for each in self.plugins]
        if name is None and len(names) == 1:
            [name] = names
        plugin = None if name is None else self.find(name)
        if plugin is None:
            wanted = "Name one of them" if name is None else f"There is no plugin {name!r}"
            raise LookupError(f"{wanted}: {', '.join(names) or 'none is loaded'}.")
        return PluginView(plugin.manifest, self._bridge)

    async def reload(self) -> PluginChanges:
        """Read all again, and serve them as they are now; see `OpenTabs.reload_plugins`."""
        async with self._reloading:
            before = self.plugins, self.quarantined
            load = partial(load_plugins, self._directories, self._settings, served=self.plugins)
            plugins, quarantined = await anyio.to_thread.run_sync(load)
            changes = compare_plugins(before, (plugins, quarantined))
            if changes.added or changes.removed or changes.changed:
                await self._let_in(self._sites(plugins, quarantined))
                # First the pages, then the list: who reads the new list can call what is on it.
                await self._bridge.sync_plugins(self._specs(plugins))
                self._toolbox.set_plugins(plugin.manifest for plugin in plugins)
            self.plugins, self.quarantined = plugins, quarantined
            _log_changes(changes)
            self._warn(plugins)
        return changes

    async def watch(self) -> None:
        """Reload them whenever their files change, until cancelled."""
        from opentabs_py.plugins.watch import watch_plugins  # noqa: PLC0415 (only serve needs it)

        async def reload() -> None:
            try:
                await self.reload()
            except OSError as error:  # a full disk, say: the next change may find it otherwise
                logger.warning("The plugins cannot be reloaded: %s", error)

        await watch_plugins(self._directories, reload)

    async def _let_in(self, sites: Sequence[str]) -> None:
        """Let the extension touch new sites, for which it has to be reloaded: once no call runs."""
        if self._staged.lacks(sites):
            with anyio.move_on_after(self._toolbox.limits.ceiling):
                await self._bridge.wait_idle()
            self._staged.allow(sites)

    async def _read_stack(self, name: str, stack: str) -> str:
        plugin = self.find(name)
        source_map = None if plugin is None else plugin.source_map
        return await anyio.to_thread.run_sync(read_stack, stack, source_map)

    def _warn(self, plugins: Sequence[Plugin]) -> None:
        """Log, once for each plugin, that it does not say which SDK built it."""
        names = {p.manifest.name for p in plugins if p.manifest.sdk_version is None}
        for name in sorted(names - self._warned):
            logger.warning("The plugin %s is served, but %s", name, UNKNOWN)
        self._warned |= names

    def _specs(self, plugins: Sequence[Plugin]) -> list[PluginSpec]:
        return [_spec(each, self._staged, to_debug=self._to_debug) for each in plugins]


def _log_changes(changes: PluginChanges) -> None:
    for names, what in (
        (changes.added, "Added"),
        (changes.removed, "Removed"),
        (changes.changed, "Reloaded"),
    ):
        if names:
            logger.info("%s %s", what, ", ".join(names))
    for each in changes.broken:
        logger.warning("Not served as it is now: %s", each.reason)


def _spec(plugin: Plugin, staged: StagedExtension, *, to_debug: bool) -> PluginSpec:
    manifest = plugin.manifest
    adapter = plugin.adapter_to_debug if to_debug else plugin.adapter
    pre_script = plugin.pre_script
    return PluginSpec(
        name=manifest.name,
        version=manifest.version,
        matches=list(manifest.url_patterns),
        exclude_matches=list(manifest.exclude_patterns),
        file=staged.add_adapter(manifest.name, adapter),
        config=dict(plugin.config),
        pre_script=None if pre_script is None else staged.add_pre_script(manifest.name, pre_script),
    )
