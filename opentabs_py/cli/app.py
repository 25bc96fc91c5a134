"""The command-line application: all commands in one place."""

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from opentabs_py import __version__
from opentabs_py.cli.command_classes import App

_HELP: Final = (
    "Run tools inside real web pages and serve them over MCP.\n\n"
    "Settings come from the command line, OPENTABS_* environment variables, "
    r"\[tool.opentabs] in pyproject.toml and your own config.toml, in this order; the first wins."
    "\n\nExit codes: 0 success; 1 the tool, the build or a test failed; 2 usage error; 3 the chain "
    "failed (server, browser, extension or page); 5 there are no tests; 130 Ctrl-C."
)


@dataclass(frozen=True, slots=True)
class _Command:
    """Where a command is defined: a module of this package, and names in it.

    Attributes:
        module: The module.
        name: Its function, or its Typer application if it has commands of its own.
        cls: Its class of commands, if not that of `App`.
        settings: Passed on to Click.
    """

    module: str
    name: str
    cls: str | None = None
    settings: dict[str, Any] | None = None


_PANELS: Final = {
    "First steps": {
        "demo": _Command("demo", "demo"),
        "doctor": _Command("doctor", "doctor"),
    },
    "Write and test a plugin": {
        "new": _Command("new", "new"),
        "dev": _Command("dev", "dev"),
        "build": _Command("build", "build"),
        "test": _Command("run_tests", "run_tests", "TestCommand", {"ignore_unknown_options": True}),
        "report": _Command("report", "app"),
        "inspect": _Command("inspect", "inspect"),
    },
    "Follow a site": {
        "analyze": _Command("analyze", "analyze"),
        "record": _Command("record", "record"),
        "verify": _Command("verify", "verify"),
    },
    "Serve tools": {
        "serve": _Command("serve", "serve"),
        "start": _Command("start", "start"),
        "stop": _Command("start", "stop"),
        "restart": _Command("start", "restart"),
        "status": _Command("status", "status"),
        "logs": _Command("logs", "logs"),
        "ui": _Command("ui", "ui"),
        "config": _Command("config", "config"),
    },
    "Use tools": {
        "tools": _Command("tools", "tools"),
        "call": _Command("call", "call"),
    },
    "Decide, and look back": {
        "review": _Command("review", "review"),
        "audit": _Command("audit", "audit"),
        "stats": _Command("audit", "stats"),
        "trace": _Command("trace", "app"),
    },
    "Browsers and sign-ins": {
        "browser": _Command("browser", "app"),
        "login": _Command("login", "login"),
        "profile": _Command("login", "profile_app"),
    },
    "Fleet": {
        "worker": _Command("worker", "worker"),
        "fleet": _Command("fleet", "app"),
    },
}


def create_app(wanted: str | None) -> typer.Typer:
    """Return the application with all commands, or with one.

    A command starts in a third less time, and a server takes 2 MB less, if no other is imported.

    Args:
        wanted: The name of the command that will run, if it is one.
    """
    app = App(
        name="opentabs",
        help=_HELP,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_show_locals=False,
    )
    app.callback()(_main)
    commands = [
        (panel, name, command)
        for panel, in_panel in _PANELS.items()
        for name, command in in_panel.items()
    ]
    chosen = [each for each in commands if each[1] == wanted] or commands
    for panel, name, command in chosen:
        module = import_module(f"opentabs_py.cli.commands.{command.module}")
        entry = getattr(module, command.name)
        if isinstance(entry, typer.Typer):
            app.add_typer(entry, name=name, rich_help_panel=panel)
        else:
            cls = None if command.cls is None else getattr(module, command.cls)
            app.command(name, cls=cls, context_settings=command.settings, rich_help_panel=panel)(
                entry
            )
    return app


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"opentabs {__version__}")
        raise typer.Exit


def _main(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass
