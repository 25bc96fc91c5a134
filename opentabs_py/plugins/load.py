"""Load built plugins from directories; a broken one does not affect the others."""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.plugins.file_names import BUILT_ADAPTER, BUILT_TOOLS, PACKAGE
from opentabs_py.core.plugins.manifest import configure, find_name_clashes
from opentabs_py.core.plugins.manifest_files import find_sites, parse_plugin
from opentabs_py.core.plugins.settings import find_unknown_plugins, resolve_values
from opentabs_py.errors import ConfigError, PluginError
from opentabs_py.plugins.files import (
    Script,
    Stamp,
    can_read,
    check_readable,
    check_stamp,
    find_script,
    find_stamp,
    find_stamps,
    read_within,
)
from opentabs_py.plugins.manifest_cache import Build, ManifestCache
from opentabs_py.plugins.plugin import Plugin, SkippedPlugin, SourceMapFile, reasons

logger = logging.getLogger(__name__)

Given = Mapping[str, Mapping[str, object]]
"""Values of plugins' settings, by plugin and key."""

_SOURCE_MAP = f"{BUILT_ADAPTER}.map"
_ALWAYS = (PACKAGE, BUILT_TOOLS, BUILT_ADAPTER)
LONGEST_JSON = 16 * 1024 * 1024  # bytes; tools.json of the largest known plugin has 0.3 MB
LONGEST_SCRIPT = 64 * 1024 * 1024  # bytes; a page that evaluates more would be unusable
# ns; a file written this shortly before it was read may have been written again with the same time
_RECENT = 2_000_000_000


def is_plugin(directory: Path) -> bool:
    """Return whether a directory contains a plugin, built or not."""
    try:
        package: object = json.loads(read_within(directory, PACKAGE, limit=LONGEST_JSON))
    except FileNotFoundError:
        return False
    except PluginError as error:
        is_denied = isinstance(error.__cause__, PermissionError)  # loading it says so
        return is_denied and find_stamp(directory, BUILT_TOOLS) is not None
    except (ValueError, RecursionError):  # it may be being edited: loading it says what is wrong
        return (directory / BUILT_TOOLS).is_file()
    return isinstance(package, dict) and "opentabs" in package


def find_plugin(start: Path) -> Path | None:
    """Return the directory of the plugin that contains an absolute path, if any."""
    return next((each for each in (start, *start.parents) if is_plugin(each)), None)


def playground(directory: Path) -> Path | None:
    """Return the directory with a plugin's own test pages, if it has one."""
    found = directory / "playground"
    is_within = found.resolve().is_relative_to(directory.resolve())
    return found if is_within and (found / "index.html").is_file() else None


def load_plugin(
    directory: Path, cache: ManifestCache | None = None, *, now: Callable[[], int] = time.time_ns
) -> Plugin:
    """Read a built plugin, without its settings.

    Args:
        directory: The plugin's directory.
        cache: Knows plugins whose files have not changed, and manifests.
        now: The time of day, in ns.

    Raises:
        PluginError: It is not valid; the text says what to fix.
    """
    if cache is not None and (known := _find_known(directory, cache)) is not None:
        return known
    try:
        check_readable(directory)
    except (FileNotFoundError, NotADirectoryError):
        text = f"{directory} is not a directory. Name the plugin's own directory."
        raise PluginError(text) from None
    except OSError as error:
        raise PluginError(f"Cannot read {directory}: {error.strerror}.") from None
    began = now()
    # Taken before the files are read, so that a later write makes a difference.
    stamps = find_stamps(directory, (*_ALWAYS, _SOURCE_MAP))
    hint = "Name a plugin's directory, or create a plugin: opentabs new NAME"
    package_json = _read(directory, PACKAGE, hint)
    tools_json = _read(directory, BUILT_TOOLS, "Build the plugin first.")
    adapter = _find(directory, BUILT_ADAPTER, "Build the plugin first.")
    manifest = None if cache is None else cache.find(package_json, tools_json)
    if manifest is None:
        try:
            manifest = parse_plugin(package_json, tools_json)
        except PluginError as error:
            raise PluginError(f"{directory}: {error}") from error
        if cache is not None:
            cache.add(package_json, tools_json, manifest)
    pre_script = None
    if manifest.pre_script_file is not None:
        file = f"dist/{manifest.pre_script_file}"
        early = find_stamps(directory, [file])
        stamps = None if stamps is None or early is None else {**stamps, **early}
        hint = "tools.json names it as preScriptFile. Build the plugin again."
        pre_script = _find(directory, file, hint)
    source_map = None
    with suppress(FileNotFoundError):
        stamp = check_stamp(directory, _SOURCE_MAP, limit=LONGEST_SCRIPT)
        source_map = SourceMapFile(directory, _SOURCE_MAP, LONGEST_SCRIPT, stamp)
    if stamps is not None and not _are_final(stamps, began):
        stamps = None
    if cache is not None and stamps is not None:
        digests = {each.name: each.digest for each in (adapter, pre_script) if each is not None}
        cache.add_build(directory, Build(stamps, digests, cache.key(package_json, tools_json)))
    return Plugin(
        directory, manifest, manifest, adapter, pre_script, source_map=source_map, stamps=stamps
    )


def _are_final(stamps: Mapping[str, Stamp | None], began: int) -> bool:
    """Return whether a later write certainly changes the stamps."""
    latest = [max(each.modified, each.changed) for each in stamps.values() if each is not None]
    return all(each < began - _RECENT for each in latest)


def _find_known(directory: Path, cache: ManifestCache) -> Plugin | None:
    """Return a plugin whose files were read before and have not changed since.

    A page never gets a script that has changed all the same: it is read, and its hash compared,
    when it is staged.
    """
    build = cache.find_build(directory)
    if build is None or find_stamps(directory, build.stamps) != build.stamps:
        return None
    manifest = cache.find_manifest(build.manifest)
    if manifest is None:
        return None
    scripts = {
        name: Script(directory, name, LONGEST_SCRIPT, d) for name, d in build.digests.items()
    }
    adapter = scripts.pop(BUILT_ADAPTER)
    source_map = None
    if (stamp := build.stamps[_SOURCE_MAP]) is not None:
        source_map = SourceMapFile(directory, _SOURCE_MAP, LONGEST_SCRIPT, stamp)
    return Plugin(
        directory,
        manifest,
        manifest,
        adapter,
        scripts.get(f"dist/{manifest.pre_script_file}"),
        source_map=source_map,
        stamps=build.stamps,
    )


def _read(directory: Path, name: str, hint: str) -> bytes:
    try:
        return read_within(directory, name, limit=LONGEST_JSON)
    except FileNotFoundError:
        raise PluginError(f"{directory.absolute()} has no {name}. {hint}") from None


def _find(directory: Path, name: str, hint: str) -> Script:
    try:
        return find_script(directory, name, limit=LONGEST_SCRIPT)
    except FileNotFoundError:
        raise PluginError(f"{directory.absolute()} has no {name}. {hint}") from None


def _is_unchanged(plugin: Plugin) -> bool:
    """Return whether the plugin's files are certainly those that were loaded."""
    return plugin.stamps is not None and (
        find_stamps(plugin.directory, plugin.stamps) == plugin.stamps
    )


def load_plugins(
    directories: Iterable[Path],
    settings: Given | None = None,
    *,
    served: Iterable[Plugin] = (),
    cache: ManifestCache | None = None,
    now: Callable[[], int] = time.time_ns,
) -> tuple[list[Plugin], list[SkippedPlugin]]:
    """Load all valid plugins; return the others with the reason.

    If two plugins share a name, or two tools share an MCP name, both are refused, except a plugin
    that was served before another took its name.

    Args:
        directories: One directory per plugin.
        settings: Values of the plugins' settings.
        served: Plugins loaded before; one that is broken now stays in service unchanged, and
            one whose files have not changed is not read again.
        cache: Knows plugins whose files have not changed, and manifests.
        now: The time of day, in ns.
    """
    before = {plugin.directory: plugin for plugin in served}
    plugins: list[Plugin] = []
    skipped: list[SkippedPlugin] = []
    with cache or nullcontext():
        # A directory named twice, say in a file and on the command line, is one plugin.
        for directory in {each.resolve(): each for each in directories}.values():
            name = None
            try:
                plugin = before.get(directory)
                if plugin is None or not _is_unchanged(plugin):
                    plugin = load_plugin(directory, cache, now=now)
                name = plugin.manifest.name
                plugins.append(_configured(plugin, settings or {}))
            except PluginError as error:
                skipped.append(SkippedPlugin(directory, str(error), name))
                if directory in before and can_read(directory):  # most likely it is being built
                    plugins.append(before[directory])
    alone = _without_namesakes(plugins, before, skipped)
    return _without_clashes(alone, skipped), skipped


def _configured(plugin: Plugin, settings: Given) -> Plugin:
    manifest = plugin.parsed
    try:
        values = resolve_values(
            manifest.name, manifest.config_schema, settings.get(manifest.name, {})
        )
        manifest = configure(manifest, values)
    except PluginError as error:
        raise PluginError(f"{plugin.directory}: {error}") from error
    return replace(plugin, manifest=manifest, config=values)


def refuse_unknown_plugins(
    settings: Given, plugins: Sequence[Plugin], skipped: Sequence[SkippedPlugin]
) -> None:
    """Refuse settings for a plugin that is not loaded; only warn if they come from a file.

    Raises:
        ConfigError: They were given on the command line.
    """
    broken_names = [each.plugin for each in skipped if each.plugin is not None]
    names = sorted({*(plugin.manifest.name for plugin in plugins), *broken_names})
    typed, written = find_unknown_plugins(settings, names)
    if typed:
        have = f"Loaded plugins: {', '.join(names)}." if names else "No plugins are loaded."
        broken = "".join(f"\nSkipped: {reason}" for reason in reasons(skipped))
        raise ConfigError(
            f"--set names a plugin that is not loaded: {', '.join(typed)}. {have}{broken}"
        )
    if written:
        logger.warning("Ignoring settings for plugins that are not loaded: %s", ", ".join(written))


def future_sites(skipped: Iterable[SkippedPlugin], settings: Given) -> list[str]:
    """Return the match patterns of those plugins that merely have not been built yet."""
    sites: list[str] = []
    for directory in {each.directory for each in skipped}:
        try:
            package_json = read_within(directory, PACKAGE, limit=LONGEST_JSON)
        except (FileNotFoundError, PluginError):
            continue
        sites += find_sites(package_json, settings)
    return sites


def _without_namesakes(
    plugins: Sequence[Plugin], served: Collection[Path], skipped: list[SkippedPlugin]
) -> list[Plugin]:
    """Return the plugins without those that share a name; one that is already served stays."""
    kept: list[Plugin] = []
    for plugin in plugins:
        name = plugin.manifest.name
        namesakes = [each.directory for each in plugins if each.manifest.name == name]
        in_service = [directory for directory in namesakes if directory in served]
        if len(namesakes) == 1 or in_service == [plugin.directory]:
            kept.append(plugin)
            continue
        *others, last = map(str, namesakes)
        where = f"{', '.join(others)} and {last}"
        reason = f"Several plugins are named {name!r}: {where}. Load only one."
        skipped.append(SkippedPlugin(plugin.directory, reason, name))
    return kept


def _without_clashes(plugins: Sequence[Plugin], skipped: list[SkippedPlugin]) -> list[Plugin]:
    clashes = find_name_clashes(plugin.manifest for plugin in plugins)
    kept: list[Plugin] = []
    for plugin in plugins:
        manifest = plugin.manifest
        clashing = {t.name for t in manifest.tools if mcp_name(manifest.name, t.name) in clashes}
        for tool in sorted(clashing):
            name = mcp_name(manifest.name, tool)
            owners = " and ".join(f"{tool!r} of {owner!r}" for owner, tool in clashes[name])
            reason = f"Two tools would be named {name}: {owners}. Rename one of them."
            skipped.append(SkippedPlugin(plugin.directory, reason, manifest.name))
        tools = tuple(tool for tool in manifest.tools if tool.name not in clashing)
        kept.append(replace(plugin, manifest=replace(manifest, tools=tools)))
    return kept
