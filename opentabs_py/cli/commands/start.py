"""`opentabs start`, `stop` and `restart`: a server that stays."""

import inspect
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opentabs_py.cli.commands.serve import serve
from opentabs_py.cli.exit_codes import CHAIN_FAILED
from opentabs_py.cli.option_groups import with_parameters
from opentabs_py.cli.options import NamedServer
from opentabs_py.core.text import quantity
from opentabs_py.errors import ConfigError

if TYPE_CHECKING:
    from opentabs_py.daemon.spawn import StartFailedError
    from opentabs_py.daemon.state import ServerState

LOOK_AGAIN = 0.3  # s

Name = Annotated[
    str,
    typer.Option("--name", metavar="NAME", help="Name of the server."),
]

# Of the parameters of `serve`, its context and what makes no sense for a server without a terminal.
_NOT_IN_BACKGROUND = {"ctx", "stdio", "exit_with_browser", "name", "log_file", "check"}


def _with_options_of_serve(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `serve` to a command, which finds them in the context's arguments."""
    own = [
        each
        for each in inspect.signature(command).parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    serves = inspect.signature(serve).parameters.values()
    passed_on = [each for each in serves if each.name not in _NOT_IN_BACKGROUND]
    return with_parameters(command, [*own, *passed_on])


@_with_options_of_serve
def start(
    ctx: typer.Context,
    name: Name = "default",
    print_unit: Annotated[
        bool,
        typer.Option(
            "--print-unit",
            help="Print a systemd user unit, or on macOS a launchd agent, that starts this server "
            "when you log in; start nothing.",
        ),
    ] = False,
    **_serve: Any,
) -> None:
    """Start a server in the background, and return when it is up.

    Takes the options of `opentabs serve`. While it runs, `opentabs call` and other commands use it
    instead of starting a browser of their own.

    [dim]opentabs start --plugin DIR --headed --profile ~/.opentabs-profile[/]
    """
    from opentabs_py.cli.signals import exit_at_signals
    from opentabs_py.cli.terminal import write_result
    from opentabs_py.config.names import check_name
    from opentabs_py.daemon.state import (
        AlreadyRunningError,
        is_claimed,
        own_variables,
        read_state,
    )
    from opentabs_py.daemon.units import unit

    arguments = _for_serve(ctx.meta["arguments"])
    check_name(name, "server name")
    if print_unit:
        write_result(unit(name, arguments, Path.cwd(), own_variables()))
        return
    if is_claimed(name):
        raise AlreadyRunningError(name, read_state(name))
    exit_at_signals()
    _report_started(_start(name, arguments, Path.cwd()))


def stop(name: NamedServer = "default") -> None:
    """Stop a background server: end its calls, and close its browser."""
    from opentabs_py.cli.terminal import err
    from opentabs_py.config.names import check_name
    from opentabs_py.daemon.spawn import stop_server, stop_unknown
    from opentabs_py.daemon.state import is_claimed, not_running, read_state

    state = read_state(check_name(name, "server name"))
    if state is not None:
        stop_server(state)
        pid = state.pid
    elif is_claimed(name):
        pid = stop_unknown(name)
    else:
        err.print(not_running(name))
        return
    err.print(f"Stopped the server {name!r} (pid {pid}).")


def restart(name: NamedServer = "default") -> None:
    """Stop a server and start it again, with the same options, in the same directory.

    The options include the OPENTABS_* environment variables with which it was started; the
    current shell's are ignored.
    """
    from opentabs_py.cli.signals import exit_at_signals
    from opentabs_py.cli.terminal import err
    from opentabs_py.daemon.spawn import StartFailedError, check_start, stop_server
    from opentabs_py.daemon.state import require_state

    state = require_state(name)
    who = f"The server {name!r} (pid {state.pid})"
    if state.log is None:
        raise ConfigError(f"{who} runs in a terminal; restart it there.")
    directory = Path(state.directory)
    if not directory.is_dir():
        raise ConfigError(
            f"{who} was started in {directory}, which no longer exists. Create it again. Or "
            f"stop the server, and start it elsewhere:\n  {_start_line(state)}"
        )
    again = (name, _for_serve(state.arguments), directory, state.environment)
    try:
        check_start(*again)
    except StartFailedError as error:
        _show(error)
        err.print(f"{who} could not be started again, so it was left running.")
        raise typer.Exit(_exit_code(error)) from None
    exit_at_signals()
    try:
        stop_server(state)
        started = _start(*again)
    except BaseException:
        names = ", ".join(state.environment or ())
        needed = f", with the variables {names}" if names else ""
        text = f"To start it again as it was{needed}:\n  cd {shlex.quote(state.directory)}"
        err.print(f"{text}\n  {_start_line(state)}", markup=False, soft_wrap=True)
        raise
    _report_started(started)


def _start_line(state: "ServerState") -> str:
    """Return the command that starts a server as it was started."""
    from opentabs_py.daemon.state import name_flag

    arguments = shlex.join(_for_serve(state.arguments))
    return f"opentabs start{name_flag(state.name)} {arguments}".rstrip()


def _for_serve(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without those that `start_server` adds, or that only `start` has."""
    kept: list[str] = []
    given = iter(arguments)
    for each in given:
        if each in ("--name", "--log-file"):
            next(given, None)
        elif each != "--print-unit" and not each.startswith(("--name=", "--log-file=")):
            kept.append(each)
    return kept


def _start(
    name: str,
    arguments: Sequence[str],
    directory: Path,
    environment: Mapping[str, str] | None = None,
) -> "ServerState":
    from opentabs_py.cli.terminal import spinner
    from opentabs_py.daemon.spawn import StartFailedError, start_server

    try:
        with spinner("Starting"):
            return start_server(name, arguments, directory, environment)
    except StartFailedError as error:
        _show(error)
        raise typer.Exit(_exit_code(error)) from None


def _show(error: "StartFailedError") -> None:
    """Show why a server did not start: what it said itself, if it could."""
    from opentabs_py.cli.terminal import err, print_error
    from opentabs_py.daemon.log import message_of

    for line in error.log:
        err.out(message_of(line))
    if not error.log:
        print_error(error)


def _exit_code(error: "StartFailedError") -> int:
    return error.code if error.log and error.code > 0 else CHAIN_FAILED


def _wait_attached(state: "ServerState") -> dict[str, Any]:
    """Show what a server that attaches asks its user to do, until that is done.

    Returns:
        Its status.
    """
    from opentabs_py.cli.terminal import err, spinner
    from opentabs_py.daemon.local_client import LocalClient

    client, shown = LocalClient(state), ""
    with spinner("Waiting for the browser; Ctrl-C leaves the server running"):
        while True:
            status = client.status()
            user_action = " ".join(each["userAction"] for each in status["browsers"])
            is_attached = any(each["attached"] for each in status["browsers"])
            if (status["extension"] and not user_action) or not is_attached:
                break
            if user_action and not err.is_terminal:
                break
            if user_action != shown:
                shown = user_action
                err.print(user_action, style="yellow", soft_wrap=True)
            time.sleep(LOOK_AGAIN)
    if user_action:
        err.print(user_action, style="yellow", soft_wrap=True)  # no terminal to wait at
    return status


def _report_started(state: "ServerState") -> None:
    from opentabs_py.cli.plugin_warnings import warn_of_server
    from opentabs_py.cli.server_texts import fleet_text
    from opentabs_py.cli.terminal import err
    from opentabs_py.daemon.state import name_flag

    flag = name_flag(state.name)
    try:
        status = _wait_attached(state)
    except SystemExit:  # after Ctrl-C
        who = f"The server {state.name!r} (pid {state.pid})"
        err.print(f"{who} is still running. Stop it: opentabs stop{flag}", soft_wrap=True)
        raise
    plugins = ", ".join(each["name"] for each in status["plugins"])
    served = plugins or quantity(status["tools"], "tool")
    if status["fleet"] is not None:
        served = fleet_text(status["fleet"])
    warn_of_server(status)
    err.print(f"[green]●[/] {state.name} is running (pid {state.pid}): {served}", highlight=False)
    err.print(f"  MCP     {state.mcp_url}", soft_wrap=True)
    err.print(f"  log     {state.log}", soft_wrap=True)
    commands = f"opentabs status{flag} · opentabs logs -f{flag} · opentabs stop{flag}"
    err.print(f"  [dim]{commands}[/]", soft_wrap=True)
