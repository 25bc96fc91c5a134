"""Options of `serve`; `start` passes them on to it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from opentabs_py.cli.metrics_option import Metrics
from opentabs_py.cli.option_groups import OptionGroup
from opentabs_py.cli.options import PageOptions, PluginOptions, Port, WebMcp, WebMcpPolyfill
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.browser.discovery import Attach

_NEED_LAUNCH: Final = "--open, --headed, --profile, --signed-in and --exit-with-browser"


class ServerOptions(OptionGroup):
    """Where the server is found, and where it logs."""

    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve MCP on stdin and stdout as well.")
    ] = False
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Address to listen on.  \\[default: 127.0.0.1]"),
    ] = None
    port: Port = None
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            help="Require MCP clients to send this token over HTTP. Prefer OPENTABS_TOKEN, "
            "because every user of this machine can read the command line.",
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name under which other commands find this server.  \\[default: default]",
        ),
    ] = None
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log to a file that rotates.")
    ] = None
    metrics: Metrics = None
    check: Annotated[
        bool,
        typer.Option("--check", hidden=True, help="Check the options and settings; serve nothing."),
    ] = False

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the address."""
        return {"host": self.host, "port": self.port, "token": self.token}


class ToolOptions(PluginOptions):
    """The tools that are served."""

    webmcp: WebMcp = None
    webmcp_polyfill: WebMcpPolyfill = None
    hands: Annotated[
        bool | None,
        typer.Option(
            "--hands",
            help="Also serve tools that read any page, click, type and take screenshots.",
        ),
    ] = None

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that say which tools are served."""
        return {
            **super().settings(),
            "webmcp": tuple(self.webmcp or ()) or None,
            "webmcp_polyfill": self.webmcp_polyfill,
            "hands": self.hands,
        }


class BrowserSourceOptions(PageOptions):
    """Where the browsers come from, and what they open."""

    browser: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DIR|launch|none",
            help="[b]launch[/]: launch a Chromium with a new profile. [b]NAME=DIR[/]: launch one "
            "called NAME, with the profile in DIR; repeatable. [b]none[/]: wait for an extension "
            "that you load by hand.  \\[default: launch]",
        ),
    ] = None
    attach: Annotated[
        bool,
        typer.Option(
            "--attach",
            help="Use the Chrome, Chromium, Edge or Brave that is running: load the extension into "
            "it, once you allow that in the browser.",
        ),
    ] = False
    user_data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The user data directory of the browser to attach to."),
    ] = None
    cdp: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The WebSocket URL of the browser to attach to."),
    ] = None
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Leave the extension in the attached browser when the server stops."
        ),
    ] = False
    exit_with_browser: Annotated[
        bool,
        typer.Option(
            "--exit-with-browser",
            help="Exit when the browser is closed, instead of reopening it at the next call.",
        ),
    ] = False

    def source(self) -> "tuple[Literal['launch', 'none'] | Attach, dict[str, Path]]":
        """Return where the browsers come from, and the profile directories of those with a name.

        Raises:
            ConfigError: A value is not valid, or two do not go together.
        """
        from opentabs_py.browser.discovery import Attach, check_cdp
        from opentabs_py.config.paths import absolute

        is_launched = any(
            [self.headed, self.profile, self.signed_in, self.open_, self.exit_with_browser]
        )
        if self.attach or self.user_data_dir or self.cdp:
            if self.browser or is_launched:
                raise ConfigError(
                    f"--browser, {_NEED_LAUNCH} need a browser that serve launches; they cannot be "
                    "combined with --attach."
                )
            place = None if self.user_data_dir is None else absolute(self.user_data_dir)
            return Attach(place, None if self.cdp is None else check_cdp(self.cdp), self.keep), {}
        if self.keep:
            raise ConfigError("--keep is for a browser that is already running: add --attach.")
        source, profiles = read_browsers(self.browser or [])
        if source == "none" and is_launched:
            raise ConfigError(
                f"{_NEED_LAUNCH} need a browser that serve launches. Omit them, or omit --browser "
                "none."
            )
        if profiles and self.profile:
            raise ConfigError(
                "--profile and --browser NAME=DIR both name a profile. Omit --profile."
            )
        return source, profiles


class ClientOptions(OptionGroup):
    """What MCP clients receive."""

    panel = "What clients receive"

    gateway: Annotated[
        bool | None,
        typer.Option(
            "--gateway",
            help="Expose two meta-tools (find, call) instead of every tool, for agents with a "
            "small context. They are always available at /mcp/gateway.",
        ),
    ] = None
    expose: Annotated[
        str | None,
        typer.Option(
            metavar="all|ready",
            help="List all tools, or only those that work in an open tab; then the list changes "
            "with the tabs.  \\[default: all]",
        ),
    ] = None
    output_schemas: Annotated[
        bool | None,
        typer.Option(
            "--output-schemas/--no-output-schemas",
            help="Include output schemas in the list of tools; they are half of its size.  "
            "\\[default: yes]",
        ),
    ] = None
    strict_output: Annotated[
        bool | None,
        typer.Option(
            "--strict-output",
            help="Fail calls whose result violates the tool's output schema, instead of logging a "
            "warning.",
        ),
    ] = None
    max_result: Annotated[
        str | None,
        typer.Option(
            metavar="TOKENS",
            help="Truncate results that are longer, between two members, and keep them whole as a "
            "resource. Tools are then listed without output schemas.  \\[default: never]",
        ),
    ] = None
    debug: Annotated[
        bool | None,
        typer.Option("--debug", help="Send stack traces of tool errors to clients."),
    ] = None
    keepalive: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS",
            help="Repeat a call's last progress after this much silence, for clients that give up "
            "sooner than this server.  \\[default: never]",
        ),
    ] = None
    late_progress: Annotated[
        bool | None,
        typer.Option(
            "--late-progress/--no-late-progress",
            help="Keep sending stream updates of Python tools as progress after the response, to "
            "clients that use the initialize handshake.  \\[default: yes]",
        ),
    ] = None
    keep_tabs: Annotated[
        bool | None,
        typer.Option(
            "--keep-tabs",
            help="When a client disconnects, keep the tabs that it opened.",
        ),
    ] = None


class RecordOptions(OptionGroup):
    """What is recorded of calls."""

    panel = "Records"

    audit: Annotated[
        bool | None,
        typer.Option(
            "--audit/--no-audit",
            help="Record every call; `opentabs audit` shows them.  \\[default: yes]",
        ),
    ] = None
    audit_values: Annotated[
        bool | None,
        typer.Option(
            "--audit-values",
            help="Record arguments, results and error messages too, with secrets masked.",
        ),
    ] = None
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record where each call's time goes; view it with `opentabs trace show FILE`.",
        ),
    ] = None

    def settings(self) -> Mapping[str, Any]:
        """Return the settings of the audit."""
        return {"audit": self.audit, "audit_values": self.audit_values}


def read_browsers(given: Sequence[str]) -> tuple[Literal["launch", "none"], dict[str, Path]]:
    """Return where browsers come from, and the profile directories of those with a name.

    Raises:
        ConfigError: A value is not valid, or two do not go together.
    """
    from opentabs_py.config.names import is_name
    from opentabs_py.config.paths import expand_user

    if given in ([], ["launch"]):
        return "launch", {}
    if given == ["none"]:
        return "none", {}
    profiles: dict[str, Path] = {}
    for text in given:
        name, equals, directory = text.partition("=")
        if not (equals and directory and is_name(name)):
            raise ConfigError(
                f"Cannot use --browser {text}. Write `launch` or `none`, alone, or NAME=DIR, as in "
                "work=profiles/work: a name of lower-case letters, digits and hyphens, and a "
                "profile directory."
            )
        if name in profiles:
            raise ConfigError(f"Two browsers are named {name!r}; give one another name.")
        profile = expand_user(Path(directory))
        if profile.absolute() in {each.absolute() for each in profiles.values()}:
            raise ConfigError(f"Two browsers cannot share the profile {profile}.")
        profiles[name] = profile
    return "launch", profiles
