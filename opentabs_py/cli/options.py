"""Options shared by several commands."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opentabs_py.cli.option_groups import OptionGroup
from opentabs_py.core.limits import CEILING, IDLE
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.consent import Permission
    from opentabs_py.core.plugins.settings import Typed

PluginDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="DIR",
        help=(
            "Directory of a built plugin. Repeatable.  "
            "\\[default: the current directory, if it is a plugin]"
        ),
    ),
]
PluginFolders = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugins",
        metavar="DIR",
        help="Folder that contains plugin directories. Repeatable.",
    ),
]
PluginDir = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="The plugin's directory.  \\[default: the current directory]",
        show_default=False,
    ),
]
ToolSources = Annotated[
    list[str] | None,
    typer.Option(
        "--tools",
        metavar="FILE|MODULE[:NAME]",
        help="Python tools: all tools in a file or module, or only the one named. Repeatable.",
    ),
]
OpenUrls = Annotated[
    list[str] | None,
    typer.Option("--open", metavar="URL", help="Page to open first. Repeatable."),
]
PluginSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PLUGIN.KEY=VALUE",
        help="Set a plugin setting. Repeatable.",
    ),
]
WebMcp = Annotated[
    list[str] | None,
    typer.Option(
        "--webmcp",
        metavar="PATTERN",
        help="Serve the tools that pages register themselves (WebMCP). PATTERN is a match pattern, "
        "such as https://example.com/*, or [b]all[/]. Repeatable. See docs/webmcp.md.",
    ),
]
WebMcpPolyfill = Annotated[
    bool | None,
    typer.Option(
        "--webmcp-polyfill",
        help="Provide WebMCP to those pages with a script, for browsers that lack it.",
    ),
]
# Numbers are strings here, so that the settings validate them and report the same error wherever
# a number comes from.
Idle = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS",
        help=f"End a call after this long without progress.  \\[default: {IDLE:g}]",
    ),
]
Ceiling = Annotated[
    str | None,
    typer.Option(
        metavar="SECONDS",
        help=f"End a call after this long, even with progress.  \\[default: {CEILING:g}]",
    ),
]
Port = Annotated[
    str | None,
    typer.Option(metavar="N", help="Port to listen on; 0 picks a free one.  \\[default: 8377]"),
]
Permissions = Annotated[
    list[str] | None,
    typer.Option(
        "--permission",
        metavar="NAME=off|ask|auto",
        help="Whether a tool may run: never, after asking you, or at once. NAME is PLUGIN.TOOL, "
        "PLUGIN, or [b]default[/]. Repeatable. `opentabs review` and docs/consent.md say more.",
    ),
]
NoReview = Annotated[
    list[Path] | None,
    typer.Option(
        "--no-review",
        metavar="DIR",
        help="Serve the plugins in DIR without review, because you develop them. Repeatable.",
    ),
]
Headed = Annotated[
    bool | None, typer.Option("--headed/--headless", help="Show the browser's window.")
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|DIR",
        help="Browser profile, to stay signed in: a name, as for `opentabs login`, or the path of "
        "a directory, with a / in it.  \\[default: a fresh profile]",
    ),
]
SignedIn = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Begin with a sign-in that `opentabs login URL --save NAME` has saved.",
    ),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Do not use a running server."),
]
ServerName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        envvar="OPENTABS_SERVER",
        show_envvar=False,
        help="Name of the running server to use.  \\[default: default]",
    ),
]
NamedServer = Annotated[
    str,
    typer.Option("--server", "--name", metavar="NAME", help="Name of the server."),
]


def is_on_command_line(ctx: typer.Context, option: str) -> bool:
    """Return whether an option is given, other than by its environment variable."""
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def refuse_server(ctx: typer.Context, others: Mapping[str, object]) -> None:
    """Refuse `--server` beside options with which a command uses no running server.

    Args:
        ctx: The command.
        others: The values of these options, by their names.

    Raises:
        ConfigError: One of them is given, and `--server` is on the command line.
    """
    other = next((option for option, value in others.items() if value), None)
    if other is not None and is_on_command_line(ctx, "server"):
        raise ConfigError(
            f"--server and {other} cannot be combined: with {other}, no running server is used. "
            "Leave one of them out."
        )


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]


class PluginOptions(OptionGroup):
    """The plugins and the Python tools."""

    panel = "Plugins and tools"

    plugin: PluginDirs = None
    plugins: PluginFolders = None
    tools_: ToolSources = None
    set_: PluginSettings = None

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that name the plugins, and those of the plugins."""
        return {
            "plugins": tuple(self.plugin or ()) or None,
            "plugin_folders": tuple(self.plugins or ()) or None,
            "plugin_settings": _read_plugin_settings(self.set_),
        }

    def load_tools(self) -> list[Any]:
        """Load the tools that --tools names.

        Raises:
            ConfigError: A tool cannot be loaded.
        """
        return load_tools(self.tools_)


class ConsentOptions(OptionGroup):
    """What may run."""

    panel = "Permissions"

    permission: Permissions = None
    no_review: NoReview = None

    def settings(self) -> Mapping[str, Any]:
        """Return the settings about permissions and reviews."""
        return {
            "permissions": _read_permissions(self.permission),
            "no_review": tuple(self.no_review or ()) or None,
        }


class BrowserOptions(OptionGroup):
    """How the browser is launched."""

    panel = "Browser"

    headed: Headed = None
    profile: Profile = None
    signed_in: SignedIn = None

    def settings(self) -> Mapping[str, Any]:
        """Return the settings about the browser."""
        profile = None if self.profile is None else find_profile(self.profile)
        return {"headed": self.headed, "profile": profile, "signed_in": self.signed_in}


class PageOptions(BrowserOptions):
    """How the browser is launched, and what it opens."""

    open_: OpenUrls = None


class TimerOptions(OptionGroup):
    """How long calls may take."""

    panel = "Time limits"

    idle: Idle = None
    ceiling: Ceiling = None


def find_profile(text: str) -> Path:
    """Return the directory of a profile that is given by its name, or as a directory.

    Raises:
        ConfigError: It is neither.
    """
    from opentabs_py.browser.signed_in import profile_dir
    from opentabs_py.config.paths import expand_user

    if "/" in text or os.sep in text or text.startswith(("~", ".")):
        return expand_user(Path(text))
    try:
        return profile_dir(text)
    except ConfigError as error:
        raise ConfigError(f"{error} To name a directory, write ./{text}.") from None


def gather_settings(*groups: OptionGroup, **given: Any) -> "Settings":
    """Gather the settings of a command from its options and all other sources.

    If no plugin is named anywhere, the current directory is used if it is a plugin.

    Args:
        groups: Groups of the command's options.
        given: Settings that do not come from them, or take their place; None for none.

    Raises:
        ConfigError: A setting is not valid.
    """
    from opentabs_py.config.paths import working_dir
    from opentabs_py.config.settings import load_settings
    from opentabs_py.plugins.load import is_plugin

    values: dict[str, Any] = {}
    for group in groups:
        values |= group.settings()
    settings = load_settings(**(values | given))
    if settings.plugins or settings.plugin_folders or not is_plugin(Path()):
        return settings
    return settings.model_copy(update={"plugins": (working_dir(),)})


def _read_plugin_settings(given: Sequence[str] | None) -> "dict[str, dict[str, Typed]]":
    """Return the values of `--set` by plugin and key; the last value for a key wins.

    Raises:
        ConfigError: A value does not have the form `plugin.key=value`.
    """
    from opentabs_py.core.plugins.settings import parse_assignment

    settings: dict[str, dict[str, Typed]] = {}
    for text in given or ():
        try:
            plugin, key, value = parse_assignment(text)
        except ValueError as error:
            raise ConfigError(f"Cannot parse --set: {error}.") from None
        settings.setdefault(plugin, {})[key] = value
    return settings


def _read_permissions(given: Sequence[str] | None) -> "dict[str, Permission] | None":
    """Return the values of `--permission`; the last for a name wins.

    Raises:
        ConfigError: A value does not have the form `NAME=ask`.
    """
    from opentabs_py.core.consent import parse_rule

    try:
        return dict(parse_rule(text) for text in given or ())
    except ValueError as error:
        raise ConfigError(f"Cannot parse --permission: {error}.") from None


def load_tools(sources: Sequence[str] | None) -> list[Any]:
    """Load the tools that --tools names. What their modules print goes to stderr.

    Raises:
        ConfigError: A tool cannot be loaded.
    """
    if not sources:
        return []
    from opentabs_py.python_tools.load import load_tools as load

    with redirect_stdout(sys.stderr):
        return load(sources)
