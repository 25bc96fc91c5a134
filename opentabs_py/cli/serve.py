"""`opentabs serve`: run the MCP server with its own Chromium."""

import os
import stat
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from opentabs_py.cli.fleet_options import (
    Ca,
    CallsPerClient,
    Cert,
    Creds,
    FleetName,
    Labels,
    Nats,
    Queue,
    check_no_fleet,
    gather_fleet,
)
from opentabs_py.cli.metrics_option import Metrics, read_address
from opentabs_py.cli.options import (
    Ceiling,
    Headed,
    Idle,
    NoReview,
    OpenUrls,
    Permissions,
    PluginDirs,
    PluginFolders,
    PluginSettings,
    Profile,
    SignedIn,
    ToolSources,
    WebMcp,
    WebMcpPolyfill,
    gather_settings,
    gather_tools,
)
from opentabs_py.core.fleet.quotas import QUEUE
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.browser.endpoints import Attach
    from opentabs_py.config.settings import Settings
    from opentabs_py.daemon.state import Claim


def serve(
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve MCP on stdin and stdout as well.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on.  \\[default: 127.0.0.1]")
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(metavar="N", help="Port to listen on; 0 picks a free one.  \\[default: 8377]"),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            help="Require MCP clients to send this token over HTTP. Prefer OPENTABS_TOKEN, "
            "because every user of this machine can read the command line."
        ),
    ] = None,
    browser: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=DIR|launch|none",
            help="[b]launch[/]: launch a Chromium with a new profile. [b]NAME=DIR[/]: one of this "
            "name, with the profile in DIR; repeatable. [b]none[/]: wait for an extension that "
            "you load by hand.  \\[default: launch]",
        ),
    ] = None,
    attach: Annotated[
        bool,
        typer.Option(
            "--attach",
            help="Use the Chrome, Chromium, Edge or Brave that is running: load the extension into "
            "it, once you allow that in the browser.",
        ),
    ] = False,
    user_data_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The user data directory of the browser to attach to."),
    ] = None,
    cdp: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The WebSocket URL of the browser to attach to."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Leave the extension in the attached browser when the server stops."
        ),
    ] = False,
    plugin: PluginDirs = None,
    plugins: PluginFolders = None,
    tools_: ToolSources = None,
    set_: PluginSettings = None,
    webmcp: WebMcp = None,
    webmcp_polyfill: WebMcpPolyfill = None,
    permission: Permissions = None,
    no_review: NoReview = None,
    open_: OpenUrls = None,
    headed: Headed = None,
    profile: Profile = None,
    signed_in: SignedIn = None,
    exit_with_browser: Annotated[
        bool,
        typer.Option(
            "--exit-with-browser",
            help="Exit when the browser is closed, instead of reopening it at the next call.",
        ),
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record where each call's time goes; view it with `opentabs trace show FILE`.",
        ),
    ] = None,
    gateway: Annotated[
        bool | None,
        typer.Option(
            "--gateway",
            help="Expose two meta-tools (find, call) instead of every tool, for agents with a "
            "small context. They are always available at /mcp/gateway.",
        ),
    ] = None,
    expose: Annotated[
        str | None,
        typer.Option(
            metavar="all|ready",
            help="List all tools, or only those that work in an open tab; then the list changes "
            "with the tabs.  \\[default: all]",
        ),
    ] = None,
    strict_output: Annotated[
        bool | None,
        typer.Option(
            "--strict-output",
            help="Fail calls whose result violates the tool's output schema, instead of logging a "
            "warning.",
        ),
    ] = None,
    output_schemas: Annotated[
        bool | None,
        typer.Option(
            "--output-schemas/--no-output-schemas",
            help="Include output schemas in the list of tools; they are half of its size.  "
            "\\[default: yes]",
        ),
    ] = None,
    max_result: Annotated[
        str | None,
        typer.Option(
            metavar="TOKENS",
            help="Truncate longer results between two members, and keep the whole result as a "
            "resource. Tools are then listed without output schemas.  \\[default: never]",
        ),
    ] = None,
    debug: Annotated[
        bool | None,
        typer.Option("--debug", help="Send stack traces of tool errors to clients."),
    ] = None,
    keepalive: Annotated[
        str | None,
        typer.Option(
            metavar="SECONDS",
            help="Repeat a call's last progress after this much silence, for clients that give up "
            "sooner than this server.  \\[default: never]",
        ),
    ] = None,
    late_progress: Annotated[
        bool | None,
        typer.Option(
            "--late-progress/--no-late-progress",
            help="Keep sending stream updates of Python tools as progress after the response, to "
            "clients that use the initialize handshake.  \\[default: yes]",
        ),
    ] = None,
    keep_tabs: Annotated[
        bool | None,
        typer.Option(
            "--keep-tabs",
            help="Keep the tabs that a client opened when the client disconnects.",
        ),
    ] = None,
    hands: Annotated[
        bool | None,
        typer.Option(
            "--hands",
            help="Also serve tools that look at any page, click, type and take screenshots.",
        ),
    ] = None,
    audit: Annotated[
        bool | None,
        typer.Option(
            "--audit/--no-audit",
            help="Record every call; `opentabs audit` shows them.  \\[default: yes]",
        ),
    ] = None,
    audit_values: Annotated[
        bool | None,
        typer.Option(
            "--audit-values",
            help="Record arguments, results and error messages too, with secrets masked.",
        ),
    ] = None,
    idle: Idle = None,
    ceiling: Ceiling = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name under which other commands find this server.  \\[default: default]",
        ),
    ] = None,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Log to a file that rotates.")
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", hidden=True, help="Check the options and settings; serve nothing."),
    ] = False,
    metrics: Metrics = None,
    nats: Nats = None,
    label: Labels = None,
    queue: Queue = QUEUE,
    calls_per_client: CallsPerClient = None,
    fleet: FleetName = "default",
    creds: Creds = None,
    ca: Ca = None,
    cert: Cert = None,
) -> None:
    """Serve plugins' tools to MCP clients, with a dedicated Chromium.

    Rebuilt plugins are reloaded without a restart, in open tabs too. So are plugins added to, or
    removed from, a plugin folder or a settings file. With only Python tools and no plugin, no
    browser is started.

    Ctrl-C or SIGTERM stops the server and leaves no processes or files behind. `opentabs start`
    does the same in the background. Other commands, such as `opentabs call`, use this server too;
    with --stdio, only if --name names it.

    With --nats, it is an endpoint of a fleet: it serves the tools of all workers (`opentabs
    worker`), and launches no browser.
    """
    from opentabs_py.browser.endpoints import Attach, check_cdp
    from opentabs_py.cli.run import run
    from opentabs_py.cli.serve_session import serve_session
    from opentabs_py.config.paths import absolute
    from opentabs_py.config.settings import DEFAULT_PORT

    source: Literal["launch", "none"] | Attach
    source, profiles = read_browsers(browser or [])
    is_attached = bool(attach or user_data_dir or cdp)
    if is_attached:
        place = None if user_data_dir is None else absolute(user_data_dir)
        source = Attach(place, None if cdp is None else check_cdp(cdp), keep)
    _check_browser(
        source,
        is_named=bool(browser),
        is_launched=bool(open_ or headed or profile),
        is_kept=keep,
    )
    if profiles and profile:
        raise ConfigError("--profile and --browser NAME=DIR both name a profile. Omit --profile.")
    _check_hands(hands=bool(hands), drives=source != "none" and nats is None)
    endpoint = None
    if nats is not None:
        if plugin or plugins or browser or is_attached or open_ or headed or profile or signed_in:
            raise ConfigError(
                "An endpoint of a fleet has no plugins and no browser; its workers have them. Pass "
                "--plugin, --open and the browser's options to `opentabs worker`, or omit --nats."
            )
        if webmcp or webmcp_polyfill:
            raise ConfigError(
                "The tools that pages register are not served in a fleet. Omit --webmcp, or --nats."
            )
        endpoint = gather_fleet(
            nats,
            fleet,
            creds,
            ca,
            cert,
            labels=label,
            queue=queue,
            calls_per_client=calls_per_client,
        )
    else:
        check_no_fleet(label, calls_per_client)
    address = read_address(metrics)
    if stdio:
        _check_pipes()
    _log_to(log_file)
    # Output printed while tools are imported and created must not reach the client.
    with redirect_stdout(sys.stderr) if stdio else nullcontext():
        tools = gather_tools(tools_)
    # With --stdio only the extension uses the port, so any free one will do.
    read_settings = partial(
        gather_settings,
        plugin,
        plugins,
        set_,
        permission=permission,
        no_review=no_review,
        webmcp=tuple(webmcp) if webmcp else None,
        webmcp_polyfill=webmcp_polyfill,
        host=host,
        port=port,
        token=token,
        headed=headed,
        profile=profile,
        signed_in=signed_in,
        gateway=gateway,
        expose=expose,
        strict_output=strict_output,
        output_schemas=output_schemas,
        max_result=max_result,
        debug=debug,
        keepalive=keepalive,
        late_progress=late_progress,
        keep_tabs=keep_tabs,
        hands=hands,
        audit=audit,
        audit_values=audit_values,
        idle=idle,
        ceiling=ceiling,
    )
    settings = read_settings().with_audit_default()
    if "port" not in settings.model_fields_set and not (stdio and source == "launch"):
        settings = settings.model_copy(update={"port": DEFAULT_PORT})

    if check:
        _check_plugins(settings)
        return

    async def forever(claim: "Claim | None") -> int:
        with redirect_stdout(sys.stderr) if stdio else nullcontext():
            await serve_session(
                settings,
                tools,
                read_settings=read_settings,
                stdio=stdio,
                browser=source,
                profiles=profiles,
                urls=open_ or [],
                exit_with_browser=exit_with_browser,
                trace=trace,
                claim=claim,
                log=log_file,
                endpoint=endpoint,
                metrics=address,
            )
        return 0

    with _claimed(name, stdio=stdio) as claim:
        code = run(partial(forever, claim), interruptible=False)
    raise typer.Exit(code)


@contextmanager
def _claimed(name: str | None, *, stdio: bool) -> Generator["Claim | None"]:
    """Claim the server's name; without one, the default name, if it is free.

    A server that an MCP client starts, on stdio, is that client's own.

    Raises:
        ConfigError: The name is not valid, or another server has it.
    """
    from opentabs_py.config.names import check_name
    from opentabs_py.daemon.state import DEFAULT_NAME, AlreadyRunningError, claim

    with ExitStack() as stack:
        claimed = None
        if name is not None:
            claimed = stack.enter_context(claim(check_name(name, "server name")))
        elif not stdio:
            # Nor is a home that cannot be written to a reason not to serve.
            with suppress(AlreadyRunningError, OSError):
                claimed = stack.enter_context(claim(DEFAULT_NAME))
        yield claimed


def read_browsers(given: Sequence[str]) -> tuple[Literal["launch", "none"], dict[str, Path]]:
    """Return where browsers come from, and the profile directories of those with a name.

    Raises:
        ConfigError: A value is not valid, or two do not go together.
    """
    from opentabs_py.config.names import is_name

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
        profile = Path(directory).expanduser()
        if profile.absolute() in {each.absolute() for each in profiles.values()}:
            raise ConfigError(f"Two browsers cannot share the profile {profile}.")
        profiles[name] = profile
    return "launch", profiles


def _check_browser(
    source: "str | Attach", *, is_named: bool, is_launched: bool, is_kept: bool
) -> None:
    """Refuse options that the browser has no use for.

    Args:
        source: Where the browser comes from.
        is_named: Whether --browser is given.
        is_launched: Whether an option is given that needs a browser which serve launches.
        is_kept: Whether --keep is given.

    Raises:
        ConfigError: One is given.
    """
    if source in ("launch", "none"):
        if is_kept:
            raise ConfigError("--keep is for a browser that runs already: add --attach.")
        if source == "none" and is_launched:
            raise ConfigError(
                "--open, --headed and --profile need a browser that serve launches. Omit them, or "
                "omit --browser none."
            )
    elif is_named or is_launched:
        raise ConfigError(
            "--browser, --open, --headed and --profile need a browser that serve launches; "
            "they cannot be combined with --attach."
        )


def _check_hands(*, hands: bool, drives: bool) -> None:
    if hands and not drives:
        raise ConfigError(
            "--hands needs a browser that serve launches or attaches to; it cannot be combined "
            "with --browser none or --nats."
        )


def _log_to(file: Path | None) -> None:
    from opentabs_py.cli.log import log_to_stderr
    from opentabs_py.daemon.log import log_to_file

    if file is None:
        log_to_stderr()
    else:
        log_to_file(file)


def _check_plugins(settings: "Settings") -> None:
    from opentabs_py.plugins.folders import Sources
    from opentabs_py.plugins.load import load_plugins, refuse_unknown_plugins

    sources = Sources(settings.plugins, settings.plugin_folders)
    loaded, quarantined = load_plugins(sources.plugins(), settings.settings)
    refuse_unknown_plugins(settings.settings, loaded, quarantined)


def _check_pipes() -> None:
    for stream, number in (("stdin", 0), ("stdout", 1)):
        mode = os.fstat(number).st_mode
        if stat.S_ISREG(mode) or (stat.S_ISCHR(mode) and not os.isatty(number)):
            raise ConfigError(
                f"--stdio talks to an MCP client through pipes, but {stream} is a file, or "
                "closed. Let the client start this command."
            )
