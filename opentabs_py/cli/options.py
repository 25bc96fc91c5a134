"""Options that several commands take."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config import Settings
    from opentabs_py.core.plugin_settings import Typed

PluginDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="DIR",
        help=(
            "A built plugin's directory. Can be given several times.  "
            "\\[default: this one, if it is a plugin]"
        ),
    ),
]
PluginFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugins",
        metavar="DIR",
        help="A folder of built plugins' directories. Can be given several times.",
    ),
]
PluginDir = Annotated[
    Path, typer.Argument(metavar="[DIR]", help="The plugin's directory.  \\[default: this one]")
]
ToolSources = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="FILE|MODULE[:NAME]",
        help="Tools written in Python: those of my_tools.py, or of a module, or one of them. Can "
        "be given several times.",
    ),
]
OpenUrls = Annotated[
    list[str] | None,
    typer.Option("--open", metavar="URL", help="Open this page first. Can be given several times."),
]
PluginSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PLUGIN.KEY=VALUE",
        help="Give a plugin's setting a value. Can be given several times.",
    ),
]
# As written: what is wrong with a number is told alike, wherever the setting comes from.
IdleTimeout = Annotated[
    str | None,
    typer.Option(metavar="S", help="Seconds of silence that end a call.  \\[default: 30]"),
]
Ceiling = Annotated[
    str | None,
    typer.Option(
        metavar="S", help="Seconds a call may take, whatever it reports.  \\[default: 300]"
    ),
]
Headed = Annotated[bool | None, typer.Option("--headed/--headless", help="Show the browser.")]
Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The browser's profile, to stay signed in.  \\[default: a fresh one]"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]


def gather_settings(
    plugin: Sequence[Path] | None,
    folders: Sequence[Path] | None,
    set_: Sequence[str] | None,
    **given: Any,
) -> "Settings":
    """Gather the settings of a command that takes --plugin, --plugins and --set.

    When no plugin is named anywhere, the current directory is one if it can be.

    Raises:
        ConfigError: A setting cannot be used.
    """
    from opentabs_py.config import load_settings
    from opentabs_py.plugins.load import is_plugin

    settings = load_settings(
        plugins=tuple(plugin) if plugin else None,
        plugin_folders=tuple(folders) if folders else None,
        settings=_read_plugin_settings(set_),
        **given,
    )
    if settings.plugins or settings.plugin_folders or not is_plugin(Path()):
        return settings
    return settings.model_copy(update={"plugins": (Path(),)})


def _read_plugin_settings(given: Sequence[str] | None) -> "dict[str, dict[str, Typed]]":
    """Give the values of `--set`, by plugin and key; the last one of a key counts.

    Raises:
        ConfigError: One is not of the form `plugin.key=value`.
    """
    from opentabs_py.core.plugin_settings import parse_assignment

    settings: dict[str, dict[str, Typed]] = {}
    for text in given or ():
        try:
            plugin, key, value = parse_assignment(text)
        except ValueError as error:
            raise ConfigError(f"A --set cannot be read: {error}.") from None
        settings.setdefault(plugin, {})[key] = value
    return settings


def gather_tools(sources: Sequence[str] | None) -> list[Any]:
    """Load the tools that --tools names.

    Raises:
        ConfigError: One cannot be loaded.
    """
    if not sources:
        return []
    from opentabs_py.tools.load import load_tools

    return load_tools(sources)
