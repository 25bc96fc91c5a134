"""Loading built plugins from directories; a broken one keeps nobody else out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opentabs_py.core.plugins import PluginManifest, find_name_clashes, mcp_name, parse_plugin
from opentabs_py.errors import PluginError


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin that can be served.

    Attributes:
        adapter: The script that registers it in a page.
    """

    directory: Path
    manifest: PluginManifest
    adapter: bytes


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A plugin that cannot be served, or a tool of one, and why."""

    directory: Path
    reason: str


def load_plugin(directory: Path) -> Plugin:
    """Read a built plugin.

    Raises:
        PluginError: It cannot be used; the text says what to mend.
    """
    if not directory.is_dir():
        raise PluginError(f"{directory} is not a directory. Give the plugin's own directory.")
    contents: list[bytes] = []
    for name in ("package.json", "dist/tools.json", "dist/adapter.iife.js"):
        try:
            contents.append((directory / name).read_bytes())
        except FileNotFoundError:
            hint = "Build the plugin first." if name.startswith("dist/") else "Is it a plugin?"
            raise PluginError(f"{directory} has no {name}. {hint}") from None
        except OSError as error:
            raise PluginError(f"{directory / name} cannot be read: {error.strerror}.") from error
    package_json, tools_json, adapter = contents
    try:
        manifest = parse_plugin(package_json, tools_json)
    except PluginError as error:
        raise PluginError(f"{directory}: {error}") from error
    return Plugin(directory, manifest, adapter)


def load_plugins(directories: Iterable[Path]) -> tuple[list[Plugin], list[Quarantined]]:
    """Read all that can be read; what cannot is told with its reason.

    Two plugins of one name, and two tools of one MCP name, are both refused.
    """
    plugins: list[Plugin] = []
    quarantined: list[Quarantined] = []
    # One directory named twice, in a file and on the command line say, is one plugin.
    for directory in {each.resolve(): each for each in directories}.values():
        try:
            plugins.append(load_plugin(directory))
        except PluginError as error:
            quarantined.append(Quarantined(directory, str(error)))
    return _without_clashes(_without_namesakes(plugins, quarantined), quarantined), quarantined


def _without_namesakes(plugins: Sequence[Plugin], quarantined: list[Quarantined]) -> list[Plugin]:
    kept: list[Plugin] = []
    for plugin in plugins:
        name = plugin.manifest.name
        others = [p.directory for p in plugins if p.manifest.name == name and p is not plugin]
        if others:
            reason = f"Two plugins are named {name!r}; the other is {others[0]}. Load only one."
            quarantined.append(Quarantined(plugin.directory, reason))
        else:
            kept.append(plugin)
    return kept


def _without_clashes(plugins: Sequence[Plugin], quarantined: list[Quarantined]) -> list[Plugin]:
    clashes = find_name_clashes(plugin.manifest for plugin in plugins)
    kept: list[Plugin] = []
    for plugin in plugins:
        manifest = plugin.manifest
        clashing = {t.name for t in manifest.tools if mcp_name(manifest.name, t.name) in clashes}
        for tool in sorted(clashing):
            name = mcp_name(manifest.name, tool)
            owners = " and ".join(f"{tool!r} of {owner!r}" for owner, tool in clashes[name])
            reason = f"Two tools would be called {name}: {owners}. Rename one of them."
            quarantined.append(Quarantined(plugin.directory, reason))
        tools = tuple(tool for tool in manifest.tools if tool.name not in clashing)
        kept.append(replace(plugin, manifest=replace(manifest, tools=tools)))
    return kept
