"""The plugins of a session: on disk, in the pages, and in the tool list."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.stage import StagedExtension
from opentabs_py.config.settings import Settings, settings_files
from opentabs_py.consent.reviews import Reviews
from opentabs_py.core.consent import Standing, why_unreviewed
from opentabs_py.core.plugins.stack_traces import (
    SourceMap,
    readable_positions,
    readable_stack,
)
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.tabs.browsers import JoinedTabs
from opentabs_py.errors import ConfigError, OpenTabsError, PluginError
from opentabs_py.plugins.files import can_read, is_unreadable
from opentabs_py.plugins.folders import Sources
from opentabs_py.plugins.load import future_sites, load_plugins, refuse_unknown_plugins
from opentabs_py.plugins.manifest_cache import ManifestCache
from opentabs_py.plugins.plugin import (
    Plugin,
    PluginChanges,
    SkippedPlugin,
    compare_plugins,
    reasons,
)
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.session.browsers.webmcp import page_spec
from opentabs_py.session.plugins.news import PluginNews, log_changes
from opentabs_py.session.plugins.site_access import grant_access
from opentabs_py.session.plugins.staging import StagedPlugins, Stager
from opentabs_py.session.plugins.standings import find_standings, why_off
from opentabs_py.session.plugins.view import PluginView

logger = logging.getLogger(__name__)


class PluginSet:
    """The plugins found in some directories, and served.

    Args:
        directories: Directories of built plugins, in addition to those in the settings.
        settings: Where more plugins are, the values of their settings, and whether the user may
            inspect them in the browser's DevTools.
        read_settings: Reads the settings again, because those of plugins may change.
        cache: Manifests that need not be parsed again.
        reviews: Which installed plugins the user has approved.
        in_fleet: There are none, whatever the settings say, because a fleet's workers have them.

    Attributes:
        plugins: The plugins that are served.
        skipped: Those that cannot be served.
        standings: What the user has said of each plugin; one that is not reviewed is not injected
            into pages.

    Raises:
        ConfigError: A setting names a plugin that does not exist.
    """

    _bridges: Sequence[Bridge]
    _registry: ToolRegistry
    _stager: Stager

    def __init__(
        self,
        directories: Sequence[Path],
        settings: Settings,
        *,
        read_settings: Callable[[], Settings] | None = None,
        cache: ManifestCache | None = None,
        reviews: Reviews,
        in_fleet: bool = False,
    ) -> None:
        self._directories = directories
        self.reviews = reviews
        self.standings: dict[str, Standing] = {}
        self._synced: Mapping[str, Standing] | None = None  # what the pages have, if that is known
        self._cache = cache
        self._to_debug = settings.headed
        self._read_settings = read_settings
        self._added: Counter[Path] = Counter()
        self._reloading = anyio.Lock()
        self._in_fleet = in_fleet
        self._handle_settings(settings)
        self.plugins: list[Plugin]
        self.skipped: list[SkippedPlugin]
        self.plugins, self.skipped = load_plugins(
            self._configured.plugins(), self._given, cache=cache
        )
        refuse_unknown_plugins(self._given, self.plugins, self.skipped)
        for folder in settings.plugin_folders:
            if not (can_read(folder) or is_unreadable(folder)):
                logger.warning("%s is not a directory (yet); its plugins are served later", folder)
        self._log = PluginNews()
        self._log.log_versions(self.plugins)

    @property
    def sites(self) -> list[str]:
        """The match patterns of all sites that the extension needs access to."""
        return self._sites(self.plugins, self.skipped)

    def _sites(self, plugins: Sequence[Plugin], skipped: Sequence[SkippedPlugin]) -> list[str]:
        served = [pattern for each in plugins for pattern in each.manifest.url_patterns]
        return [*served, *future_sites(skipped, self._given), *self._settings.webmcp]

    @property
    def warnings(self) -> list[str]:
        """What keeps the user's plugins or settings from having an effect, and what to do."""
        off = (why_off(name, standing) for name, standing in self.standings.items())
        unknown = self._registry.report_unknown_rules()
        return [each for each in (*off, *unknown, self._log.settings_problem) if each is not None]

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
        self._bridges, self._registry = bridges, registry
        self._stager = Stager(staged, own_pages, to_debug=self._to_debug)
        new, self.standings = await anyio.to_thread.run_sync(self._stage, self.plugins)
        self.plugins = new.plugins
        self.skipped += new.problems
        self._list()
        self._log.log_standings(self.standings)
        await self._sync(new.specs)
        self._synced = self.standings

    def follow(self, registry: ToolRegistry) -> None:
        """Keep the permissions of tools current that a fleet's workers serve."""
        self._registry = registry

    async def read_stack(self, name: str, stack: str) -> str:
        """Return a stack trace of a plugin with its source's file names and lines, if known."""
        return await anyio.to_thread.run_sync(lambda: readable_stack(stack, self._source_map(name)))

    def read_positions(self, text: str) -> str:
        """Return a text, such as a log, with positions in plugins' sources, as far as known."""
        return readable_positions(text, self._source_map)

    def _source_map(self, name: str) -> SourceMap | None:
        plugin = self.find(name)
        if plugin is None or plugin.source_map is None:
            return None
        return plugin.source_map.parsed

    async def _sync(self, specs: Sequence[PluginSpec], *, reloads: bool = False) -> None:
        own = page_spec(self._settings, self._stager.own_pages)
        every = specs if own is None else [*specs, own]
        async with anyio.create_task_group() as tasks:
            for bridge in self._bridges:
                tasks.start_soon(partial(bridge.sync_plugins, every, reloads=reloads))

    def find(self, name: str) -> Plugin | None:
        """Return a plugin by name; None if it is not served."""
        return next((each for each in self.plugins if each.manifest.name == name), None)

    @property
    def views(self) -> list[PluginView]:
        """The plugins, as the users of the session see them."""
        return [self._view(each) for each in self.plugins]

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
            if name is None:
                text = "Name one of them:" if names else "No plugin is served."
            else:
                text = f"There is no plugin {name!r}" + ("; there are:" if names else ".")
            listed = f"{text} {', '.join(names)}." if names else text
            skipped = reasons(self.skipped)
            raise LookupError(" Skipped: ".join([listed, *skipped]))
        return self._view(plugin)

    def _view(self, plugin: Plugin) -> PluginView:
        return PluginView(plugin.manifest, JoinedTabs([each.tabs for each in self._bridges]))

    async def reload(self) -> PluginChanges:
        """Load all plugins again and serve them; see `OpenTabs.reload_plugins`.

        In a fleet, workers serve the plugins, and only the permissions are read again.
        """
        async with self._reloading:
            before = self.plugins, self.skipped
            loaded, skipped = await anyio.to_thread.run_sync(self._load)
            # At once: what follows may wait long, and the user may have turned a tool off.
            self._registry.gate.set_rules(self._settings.permissions)
            if self._in_fleet:
                return compare_plugins(before, before)
            new, standings = await anyio.to_thread.run_sync(self._stage, loaded, self.plugins)
            skipped += new.problems
            changes = compare_plugins(before, (new.plugins, skipped))
            is_changed = bool(changes.added or changes.removed or changes.changed)
            is_changed |= standings != self._synced
            if is_changed:
                self._turn_off(standings)
                self._synced = None
                async with grant_access(
                    self._sites(new.plugins, skipped),
                    self._stager.extensions,
                    self._bridges,
                    longest_call=self._settings.limits.ceiling,
                ) as reloads:
                    # First the pages, then the list, so that everything listed can be called. If
                    # this is cancelled or fails, the next reload does it.
                    await self._sync(new.specs, reloads=reloads)
                    self._synced = standings
            self.plugins, self.skipped = new.plugins, skipped
            self.standings = standings
            if is_changed or skipped != before[1]:
                self._list()
            log_changes(changes)
            self._log.log_versions(self.plugins)
            self._log.log_standings(standings)
            self._log.log_unknown_rules(self._registry.report_unknown_rules())
        return changes

    def _turn_off(self, standings: Mapping[str, Standing]) -> None:
        """Stop serving the plugins whose review was withdrawn; the rest of a reload may wait."""
        off: dict[str, Standing] = {
            name: each for name, each in standings.items() if why_unreviewed(each) is not None
        }
        if not off.items() <= self.standings.items():
            self.standings = self.standings | off
            self._list()

    def _list(self) -> None:
        manifests = [each.manifest for each in self.plugins]
        self._registry.set_plugins(manifests, self.standings, reasons(self.skipped))

    async def watch(self) -> None:
        """Reload the plugins whenever they or the settings files change, until cancelled."""
        from opentabs_py.plugins.watch import watch_plugins  # only serve needs it

        await watch_plugins(lambda: self._sources, self._try_reload)

    async def _try_reload(self) -> None:
        try:
            await self.reload()
        except OSError as error:  # for example a full disk; a later change may succeed
            logger.warning("Cannot reload the plugins: %s", error)

    @asynccontextmanager
    async def added(
        self, plugins: Sequence[Path], tasks: TaskGroup
    ) -> AsyncGenerator[Sequence[SkippedPlugin]]:
        """Serve more plugins while the context is open; several contexts may name the same one.

        Args:
            plugins: Their directories. Those that are served anyway are left alone.
            tasks: Where they are removed if the caller is cancelled: another reload may first wait
                for minutes until running calls have ended.

        Yields:
            Those that cannot be served, and why.

        Raises:
            OpenTabsError: They cannot be served, for example because the disk is full.
        """
        wanted = {each.resolve() for each in plugins}
        new = wanted - {each.resolve() for each in self._configured.plugins()}
        try:
            self._added.update(new)
            if new:
                try:
                    await self.reload()
                except OSError as error:
                    raise OpenTabsError(f"Cannot serve more plugins: {error}") from error
            yield [each for each in self.skipped if each.directory.resolve() in wanted]
        finally:
            self._added -= Counter(new)  # which forgets those no longer wanted
            if not new <= self._added.keys():
                removed = anyio.Event()
                tasks.start_soon(self._remove, removed)
                await removed.wait()

    async def _remove(self, removed: anyio.Event) -> None:
        try:
            await self._try_reload()
        finally:
            removed.set()

    @property
    def _sources(self) -> Sources:
        configured = self._configured
        return replace(configured, directories=(*configured.directories, *self._added))

    def _load(self) -> tuple[list[Plugin], list[SkippedPlugin]]:
        if self._read_settings is not None:
            try:
                self._handle_settings(self._read_settings())
                self._log.log_settings(None)
            except ConfigError as error:
                self._log.log_settings(error)
        return load_plugins(
            self._sources.plugins(), self._given, served=self.plugins, cache=self._cache
        )

    def _handle_settings(self, settings: Settings) -> None:
        if self._in_fleet:
            none: dict[str, Any] = {"plugins": (), "plugin_folders": (), "plugin_settings": {}}
            settings = settings.model_copy(update=none)
        self._given = settings.plugin_settings
        self._settings = settings
        self._configured = Sources(
            directories=(*self._directories, *settings.plugins),
            folders=settings.plugin_folders,
            files=() if self._read_settings is None else (*settings_files(), self.reviews.file),
        )

    def _stage(
        self, plugins: Sequence[Plugin], served: Sequence[Plugin] = ()
    ) -> tuple[StagedPlugins, dict[str, Standing]]:
        named = (*self._directories, *self._added)
        standings = find_standings(plugins, self._settings, self.reviews, named=named)
        return self._stager.stage(plugins, standings, served), standings


def refuse_skipped(tool: str, registry: ToolRegistry, skipped: Sequence[SkippedPlugin]) -> None:
    """Refuse a tool that is unknown while plugins are skipped, since that may be why.

    Raises:
        PluginError: The text says why they are skipped.
    """
    if skipped and registry.get(tool) is None:
        raise PluginError(registry.unknown(tool).detail.message)
