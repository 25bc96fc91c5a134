"""The plugins of a session: on disk, in the pages, and in the tool list."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.stage import StagedExtension
from opentabs_py.config.settings import Settings, settings_files
from opentabs_py.consent.reviews import Reviews
from opentabs_py.core.browsers import JoinedTabs
from opentabs_py.core.consent import Standing
from opentabs_py.core.manifest import PluginManifest
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.sdk_version import UNKNOWN
from opentabs_py.core.tabs import PluginStatus, Tabs
from opentabs_py.errors import ConfigError, PluginError
from opentabs_py.plugins.debug import read_stack
from opentabs_py.plugins.folders import Sources
from opentabs_py.plugins.load import future_sites, load_plugins, refuse_unknown_plugins
from opentabs_py.plugins.manifest_cache import ManifestCache
from opentabs_py.plugins.plugin import Plugin, PluginChanges, Quarantined, compare_plugins
from opentabs_py.server.registry import ToolRegistry
from opentabs_py.session.page_tools import page_spec
from opentabs_py.session.standings import find_standings, why_off

logger = logging.getLogger(__name__)

# s; longer than a reload of the extension may take, and a third of what clients wait for a call
HELD_FOR: Final = 20.0


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


class PluginSet:
    """The plugins found in some directories, and served.

    Args:
        directories: Directories of built plugins, in addition to those in the settings.
        settings: Where more plugins are, the values of their settings, and whether the user may
            inspect them in the browser's DevTools.
        read_settings: Reads the settings again, because those of plugins may change.
        cache: Manifests that need not be parsed again.
        reviews: Which installed plugins the user has approved.

    Attributes:
        plugins: The plugins that are served.
        quarantined: Those that cannot be served.
        standings: What the user has said of each plugin; one that is not reviewed is not injected
            into pages.

    Raises:
        ConfigError: A setting names a plugin that does not exist.
    """

    _bridges: Sequence[Bridge]
    _registry: ToolRegistry
    _staged: Sequence[StagedExtension]
    _own_pages: Sequence[str]

    def __init__(
        self,
        directories: Sequence[Path],
        settings: Settings,
        *,
        read_settings: Callable[[], Settings] | None = None,
        cache: ManifestCache | None = None,
        reviews: Reviews,
    ) -> None:
        self._directories = directories
        self.reviews = reviews
        self.standings: dict[str, Standing] = {}
        self._cache = cache
        self._to_debug = settings.headed
        self._read_settings = read_settings
        self._settings_problem: str | None = None
        self._added: Counter[Path] = Counter()
        self._reloading = anyio.Lock()
        self._handle_settings(settings)
        self.plugins: list[Plugin]
        self.quarantined: list[Quarantined]
        self.plugins, self.quarantined = load_plugins(
            self._configured.plugins(), self._given, cache=cache
        )
        refuse_unknown_plugins(self._given, self.plugins, self.quarantined)
        for folder in settings.plugin_folders:
            if not folder.is_dir():
                logger.warning("%s is not a directory (yet); its plugins are served later", folder)
        self._warned: set[str] = set()
        self._reported: set[tuple[str, Standing]] = set()
        self._unknown_rules: set[str] = set()
        self._warn(self.plugins)

    @property
    def sites(self) -> list[str]:
        """The match patterns of all sites that the extension needs access to."""
        return self._sites(self.plugins, self.quarantined)

    def _sites(self, plugins: Sequence[Plugin], quarantined: Sequence[Quarantined]) -> list[str]:
        served = [pattern for each in plugins for pattern in each.manifest.url_patterns]
        return [*served, *future_sites(quarantined, self._given), *self._settings.webmcp]

    async def serve(
        self,
        bridges: Sequence[Bridge],
        registry: ToolRegistry,
        staged: Sequence[StagedExtension],
        *,
        own_pages: Sequence[str] = (),
    ) -> None:
        """Serve the plugins: inject them into pages, and list their tools.

        Args:
            bridges: The links to the browsers' extensions.
            registry: Lists the tools.
            staged: The extensions that the browsers load.
            own_pages: Match patterns of our own pages, in which no plugin runs: it could answer in
                the user's name.
        """
        self._own_pages = own_pages
        self._bridges, self._registry, self._staged = bridges, registry, staged
        staging = await anyio.to_thread.run_sync(self._stage, self.plugins)
        self.plugins, self.standings = staging.plugins, staging.standings
        self.quarantined += staging.problems
        self._list()
        self._warn_of_standings()
        registry.read_stack = self._read_stack
        await self._sync(staging.specs)

    async def _sync(self, specs: Sequence[PluginSpec], *, reloads: bool = False) -> None:
        own = page_spec(self._settings, self._own_pages)
        every = specs if own is None else [*specs, own]
        async with anyio.create_task_group() as tasks:
            for bridge in self._bridges:
                tasks.start_soon(partial(bridge.sync_plugins, every, reloads=reloads))

    def find(self, name: str) -> Plugin | None:
        """Return a plugin by name; None if it is not served."""
        return next((each for each in self.plugins if each.manifest.name == name), None)

    def view(self, name: str | None) -> PluginView:
        """Return a plugin by name; without a name, the only one.

        Raises:
            LookupError: There is no such plugin; or, without a name, not exactly one.
        """
        names = [each.manifest.name for each in self.plugins]
        if name is None and len(names) == 1:
            [name] = names
        plugin = None if name is None else self.find(name)
        if plugin is None:
            wanted = "Name one of them" if name is None else f"There is no plugin {name!r}"
            raise LookupError(f"{wanted}: {', '.join(names) or 'none is loaded'}.")
        return PluginView(plugin.manifest, JoinedTabs([each.tabs for each in self._bridges]))

    async def reload(self) -> PluginChanges:
        """Load all plugins again and serve them; see `OpenTabs.reload_plugins`."""
        async with self._reloading:
            before = self.plugins, self.quarantined
            loaded, quarantined = await anyio.to_thread.run_sync(self._load)
            # At once: what follows may wait long, and the user may have turned a tool off.
            self._registry.gate.set_rules(self._settings.permissions)
            staging = await anyio.to_thread.run_sync(self._stage, loaded, self.plugins)
            plugins = staging.plugins
            quarantined += staging.problems
            changes = compare_plugins(before, (plugins, quarantined))
            is_changed = bool(changes.added or changes.removed or changes.changed)
            is_changed |= staging.standings != self.standings
            if is_changed:
                async with self._let_in(self._sites(plugins, quarantined)) as reloads:
                    # First the pages, then the list, so that everything listed can be called. If
                    # this is cancelled or fails, the next reload does it.
                    await self._sync(staging.specs, reloads=reloads)
            self.plugins, self.quarantined = plugins, quarantined
            self.standings = staging.standings
            if is_changed:
                self._list()
            _log_changes(changes)
            self._warn(plugins)
            self._warn_of_standings()
            self._warn_of_rules()
        return changes

    def _list(self) -> None:
        self._registry.set_plugins((each.manifest for each in self.plugins), self.standings)

    async def watch(self) -> None:
        """Reload the plugins whenever they or the settings files change, until cancelled."""
        from opentabs_py.plugins.watch import watch_plugins  # only serve needs it

        async def reload() -> None:
            try:
                await self.reload()
            except OSError as error:  # for example a full disk; a later change may succeed
                logger.warning("Cannot reload the plugins: %s", error)

        await watch_plugins(lambda: self._sources, reload)

    @asynccontextmanager
    async def added(self, plugins: Sequence[Path]) -> AsyncGenerator[Sequence[Quarantined]]:
        """Serve more plugins while the context is open; several contexts may name the same one.

        Args:
            plugins: Their directories. Those that are served anyway are left alone.

        Yields:
            Those that cannot be served, and why.
        """
        wanted = {each.resolve() for each in plugins}
        new = wanted - {each.resolve() for each in self._configured.plugins()}
        try:
            self._added.update(new)
            if new:
                await self.reload()
            yield [each for each in self.quarantined if each.directory.resolve() in wanted]
        finally:
            self._added -= Counter(new)  # which forgets those that are not wanted any more
            if not new <= self._added.keys():
                with anyio.CancelScope(shield=True):  # bounded: nothing new is let in
                    await self.reload()

    @property
    def _sources(self) -> Sources:
        configured = self._configured
        return replace(configured, directories=(*configured.directories, *self._added))

    def _load(self) -> tuple[list[Plugin], list[Quarantined]]:
        if self._read_settings is not None:
            try:
                self._handle_settings(self._read_settings())
                self._settings_problem = None
            except ConfigError as error:
                if str(error) != self._settings_problem:  # logged once
                    self._settings_problem = str(error)
                    logger.warning("Keeping the previous settings: %s", error)
        return load_plugins(
            self._sources.plugins(), self._given, served=self.plugins, cache=self._cache
        )

    def _handle_settings(self, settings: Settings) -> None:
        self._given = settings.settings
        self._settings = settings
        self._configured = Sources(
            directories=(*self._directories, *settings.plugins),
            folders=settings.plugin_folders,
            files=() if self._read_settings is None else (*settings_files(), self.reviews.file),
        )

    @asynccontextmanager
    async def _let_in(self, sites: Sequence[str]) -> AsyncGenerator[bool]:
        """Grant the extensions access to new sites, once no call is running.

        Yields:
            Whether they reload when they next receive the list of plugins; no call begins before
            the end of the context.
        """
        lacking = [each for each in self._staged if each.lacks(sites)]
        try:
            if lacking:
                await self._drain()
            for each in lacking:
                each.allow(sites)
            yield bool(lacking)
        finally:
            if lacking:
                for bridge in self._bridges:
                    bridge.release_calls()

    async def _drain(self) -> None:
        """Wait until no call runs in any browser, but not for ever; hold back new ones then."""
        self._hold_calls()
        with anyio.move_on_after(self._registry.limits.ceiling):
            while any(bridge.calls.running for bridge in self._bridges):
                for bridge in self._bridges:
                    await bridge.calls.wait_idle()
        self._hold_calls()

    def _hold_calls(self) -> None:
        for bridge in self._bridges:
            bridge.hold_calls(HELD_FOR)

    async def _read_stack(self, name: str, stack: str) -> str:
        plugin = self.find(name)
        source_map = None if plugin is None else plugin.source_map
        return await anyio.to_thread.run_sync(read_stack, stack, source_map)

    def _warn(self, plugins: Sequence[Plugin]) -> None:
        """Log, once per plugin, that it does not state its SDK version."""
        names = {p.manifest.name for p in plugins if p.manifest.sdk_version is None}
        for name in sorted(names - self._warned):
            logger.warning("The plugin %s is served, but %s", name, UNKNOWN)
        self._warned |= names

    def _warn_of_rules(self) -> None:
        """Log, once each, permissions that name nothing: perhaps they are misspelt."""
        unknown = {*self._registry.unknown_rules()}
        for rule in sorted(unknown - self._unknown_rules):
            logger.warning(
                'permissions."%s" has no effect: no plugin or tool of that name is served', rule
            )
        self._unknown_rules = unknown

    def _warn_of_standings(self) -> None:
        """Log, once each, which plugins are turned off until their user has reviewed them."""
        for name, standing in self.standings.items():
            why = why_off(name, standing)
            if why is not None and (name, standing) not in self._reported:
                logger.warning("%s", why)
        self._reported = {*self.standings.items()}

    def _stage(self, plugins: Sequence[Plugin], served: Sequence[Plugin] = ()) -> "_Staging":
        """Write the plugins' scripts to where the browser reads them.

        A plugin whose files have changed since they were loaded is invalid: its parts would not fit
        together. If it was served before, that version stays in service.
        """
        before = {plugin.directory: plugin for plugin in served}
        named = (*self._directories, *self._added)
        standings = find_standings(plugins, self._settings, self.reviews, named=named)
        staging = _Staging([], [], [], standings)
        for plugin in plugins:
            if staging.standings[plugin.manifest.name] in ("unreviewed", "changed"):
                staging.plugins.append(plugin)  # listed as turned off; no page runs its scripts
                continue
            try:
                staging.add(plugin, self._spec(plugin))
            except PluginError as error:
                name = plugin.manifest.name
                staging.problems.append(Quarantined(plugin.directory, str(error), name))
                if (older := before.get(plugin.directory)) is not None:
                    staging.add(older, self._spec(older))  # reads nothing: it is there already
        return staging

    def _spec(self, plugin: Plugin) -> PluginSpec:
        manifest = plugin.manifest
        adapter = plugin.adapter_to_debug if self._to_debug else plugin.adapter
        early = plugin.pre_script
        # The same name in each, because it is that of the content.
        [file] = {each.add_adapter(manifest.name, adapter) for each in self._staged}
        pre_scripts = early and {each.add_pre_script(manifest.name, early) for each in self._staged}
        return PluginSpec(
            name=manifest.name,
            version=manifest.version,
            matches=list(manifest.url_patterns),
            exclude_matches=[*manifest.exclude_patterns, *self._own_pages],
            file=file,
            config=dict(plugin.config),
            pre_script=next(iter(pre_scripts)) if pre_scripts else None,
        )


@dataclass(frozen=True, slots=True)
class _Staging:
    """Plugins whose scripts are staged, and the specs that the extension receives."""

    plugins: list[Plugin]
    specs: list[PluginSpec]
    problems: list[Quarantined]
    standings: dict[str, Standing]

    def add(self, plugin: Plugin, spec: PluginSpec) -> None:
        self.plugins.append(plugin)
        self.specs.append(spec)


def refuse_left_out(tool: str, registry: ToolRegistry, quarantined: Sequence[Quarantined]) -> None:
    """Refuse a tool that is unknown while plugins are left out, since that may be why.

    Raises:
        PluginError: The text says why they are left out.
    """
    if quarantined and registry.get(tool) is None:
        reasons = " ".join(each.reason for each in quarantined)
        raise PluginError(f"There is no tool {tool!r}, and a plugin was left out: {reasons}")


def _log_changes(changes: PluginChanges) -> None:
    for names, what in (
        (changes.added, "Added"),
        (changes.removed, "Removed"),
        (changes.changed, "Reloaded"),
    ):
        if names:
            logger.info("%s %s", what, ", ".join(names))
    for each in changes.quarantined:
        logger.warning("The new version is not served: %s", each.reason)
