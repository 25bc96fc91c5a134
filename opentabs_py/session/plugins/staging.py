"""Put the scripts of plugins where the browser reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opentabs_py.browser.stage import StagedExtension
from opentabs_py.core.consent import Standing, why_unreviewed
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.errors import PluginError
from opentabs_py.plugins.plugin import Plugin, SkippedPlugin


@dataclass(frozen=True, slots=True)
class StagedPlugins:
    """Plugins whose scripts are where the browser reads them.

    Attributes:
        plugins: The plugins, and those that are turned off, whose scripts no page runs.
        specs: What the extensions receive.
        problems: The plugins that could not be staged.
    """

    plugins: list[Plugin] = field(default_factory=list[Plugin])
    specs: list[PluginSpec] = field(default_factory=list[PluginSpec])
    problems: list[SkippedPlugin] = field(default_factory=list[SkippedPlugin])


@dataclass(frozen=True, slots=True)
class Stager:
    """Writes scripts for the extensions of all browsers.

    Attributes:
        extensions: The extensions that the browsers load.
        own_pages: Match patterns of our own pages, in which no plugin runs: it could answer in the
            user's name.
        to_debug: Whether the user may inspect the scripts in the browser's DevTools.
    """

    extensions: Sequence[StagedExtension]
    own_pages: Sequence[str]
    to_debug: bool

    def stage(
        self,
        plugins: Sequence[Plugin],
        standings: Mapping[str, Standing],
        served: Sequence[Plugin],
    ) -> StagedPlugins:
        """Write the plugins' scripts.

        A plugin whose files have changed since they were loaded is invalid: its parts would not fit
        together. If it was served before, that version stays in service.

        Args:
            plugins: The plugins.
            standings: What the user has said of each, by name.
            served: Those that were served before.
        """
        before = {plugin.directory: plugin for plugin in served}
        staged = StagedPlugins()
        for plugin in plugins:
            name = plugin.manifest.name
            if why_unreviewed(standings[name]) is not None:
                staged.plugins.append(plugin)
                continue
            try:
                self._add(plugin, staged)
            except PluginError as error:
                staged.problems.append(SkippedPlugin(plugin.directory, str(error), name))
                if (older := before.get(plugin.directory)) is not None:
                    self._add(older, staged)  # reads nothing: it is there already
        return staged

    def _add(self, plugin: Plugin, staged: StagedPlugins) -> None:
        staged.specs.append(self._spec(plugin))
        staged.plugins.append(plugin)

    def _spec(self, plugin: Plugin) -> PluginSpec:
        manifest = plugin.manifest
        adapter = plugin.adapter_with_map if self.to_debug else plugin.adapter
        early = plugin.pre_script
        # The same name in each, because it is that of the content.
        [file] = {each.add_adapter(manifest.name, adapter) for each in self.extensions}
        pre_scripts = early and {
            each.add_pre_script(manifest.name, early) for each in self.extensions
        }
        return PluginSpec(
            name=manifest.name,
            version=manifest.version,
            matches=list(manifest.url_patterns),
            exclude_matches=[*manifest.exclude_patterns, *self.own_pages],
            file=file,
            config=dict(plugin.config),
            pre_script=next(iter(pre_scripts)) if pre_scripts else None,
        )
