"""`opentabs logs`: the log of a server that runs in the background."""

import select
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import typer

from opentabs_py.cli.options import NamedServer

STDOUT: Final = 1  # a descriptor


def logs(
    name: NamedServer = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing what is logged, until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int,
        typer.Option(
            "--lines", "-n", min=0, metavar="N", help="How many of the latest lines to print."
        ),
    ] = 50,
    plugin: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only what this plugin logged.")
    ] = None,
) -> None:
    """Print the log of a server, even if it has stopped."""
    from opentabs_py.cli.terminal import err
    from opentabs_py.config.names import check_name
    from opentabs_py.daemon import log
    from opentabs_py.daemon.state import read_state
    from opentabs_py.directories import exists
    from opentabs_py.errors import ConfigError

    state = read_state(check_name(name, "server name"))
    file = log.log_file(name)
    if state is not None and state.log is None:
        raise ConfigError(f"The server {name!r} (pid {state.pid}) logs to standard error.")
    if not exists(file):
        none = f"There is no log of a server named {name!r} at {file}"
        if not follow:
            raise ConfigError(f"{none}.")
        err.print(f"{none} yet; waiting for one.", soft_wrap=True)
    count = sys.maxsize if plugin and lines else lines
    logged: Iterator[str | None] = (
        log.follow(file, count) if follow else iter(log.last_lines(file, count))
    )
    shown = _of_plugin(iter(lambda: next(logged, None), None), plugin)  # until the first None
    _write([*shown][-lines:] if lines else [])
    _write(_of_plugin(_while_read(logged), plugin))


def _write(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def _while_read(logged: Iterator[str | None]) -> Iterator[str]:
    """Yield lines, until nobody reads what is printed: `opentabs logs -f | head -1`."""
    for line in logged:
        if line is not None:
            yield line
        elif _is_unread():
            return


def _is_unread() -> bool:
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(STDOUT, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _of_plugin(lines: Iterable[str], plugin: str | None) -> Iterator[str]:
    from opentabs_py.daemon.log import is_of_plugin

    is_shown = plugin is None
    for line in lines:
        if plugin is not None and (found := is_of_plugin(line, plugin)) is not None:
            is_shown = found
        if is_shown:
            yield line
