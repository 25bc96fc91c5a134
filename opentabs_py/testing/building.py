"""Find the plugins under test, and build those whose build is older than their source."""

from pathlib import Path

from opentabs_py.config.files import locked
from opentabs_py.config.paths import data_dir
from opentabs_py.config.settings import Settings
from opentabs_py.errors import PluginError
from opentabs_py.plugins.build import start_builder
from opentabs_py.plugins.freshness import is_stale
from opentabs_py.plugins.load import find_plugin
from opentabs_py.plugins.toolchain import find_toolchain

BUILD_WITHIN = 330.0  # s; the first time, npm may have to install the builder


def plugins_under_test(directory: Path, settings: Settings) -> list[Path]:
    """Return the plugin that contains a directory with tests, or else those of the settings."""
    found = find_plugin(directory)
    return list(settings.plugins) if found is None else [found]


async def build_if_stale(directory: Path) -> None:
    """Build a plugin whose source is newer than its `dist/`.

    Raises:
        BuildError: Plugins cannot be built here.
        PluginError: The plugin has errors; the message lists them all.
    """
    if not is_stale(directory):
        return
    with locked(directory):
        if not is_stale(directory):
            return  # another worker has built it in the meantime
        async with start_builder(find_toolchain(data_dir=data_dir())) as builder:
            built = await builder.build(directory)
    if built.problems:
        lines = [
            f"{each.place} {each.subject}".rstrip() + f"\n    {each.why}" for each in built.problems
        ]
        raise PluginError("\n".join([f"{directory} was not built.", *lines]))
