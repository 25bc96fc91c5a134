"""`opentabs login` and `opentabs profile`: sign in once, for later."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from opentabs_py.cli.command_classes import App
from opentabs_py.errors import ConfigError

profile_app = App(help="List, locate and remove browser profiles and saved sign-ins.")


def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The page on which to sign in.")],
    save: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Save the sign-in, encrypted, for tests (`signed_in=NAME`) and headless runs "
            "(--signed-in NAME).",
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR",
            help="Sign in within this browser profile, for `serve --profile`.  "
            "\\[default: a temporary profile]",
        ),
    ] = None,
) -> None:
    """Open a window in which you sign in; press Enter here when you are done.

    Closing the window also works, but does not save what the site keeps in IndexedDB.
    """
    import tempfile

    from opentabs_py.browser.chromium import configured_chromium
    from opentabs_py.browser.launch_plan import LaunchPlan
    from opentabs_py.browser.login import sign_in
    from opentabs_py.browser.scratch import own_directory
    from opentabs_py.browser.signed_in import is_empty, save_sign_in
    from opentabs_py.browser.switches import configured_sandbox
    from opentabs_py.cli.keyboard import wait_enter
    from opentabs_py.cli.options import find_profile
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import err, warn
    from opentabs_py.config.names import check_name
    from opentabs_py.config.settings import load_settings
    from opentabs_py.core.text import quantity
    from opentabs_py.errors import BrowserError

    if save is None and profile is None:
        raise ConfigError("Say where to keep the sign-in: --save NAME, --profile NAME, or both.")
    if save is not None:
        check_name(save)
    kept = None if profile is None else find_profile(profile)
    settings = load_settings()

    async def finished() -> None:
        err.print(f"Sign in to {escape(url)} in the window, then press [bold]Enter[/] here.")
        await wait_enter()

    async def window() -> int:
        with tempfile.TemporaryDirectory(prefix="opentabs-") as scratch:
            own_directory(Path(scratch))
            plan = LaunchPlan(
                chromium=configured_chromium(settings),
                extension=None,
                profile=kept or Path(scratch) / "profile",
                scratch=Path(scratch),
                headed=True,
                sandbox=configured_sandbox(settings),
                keeps_profile=kept is not None,
            )
            state = await sign_in(plan, url, finished)
        if kept is not None:
            err.print(f"[green]✓[/] kept in the profile {escape(str(kept))}", soft_wrap=True)
        if save is not None:
            if is_empty(state):
                raise BrowserError(
                    "There is nothing to save: the browser has neither cookies nor storage. "
                    "First sign in to the site, in the window that opens."
                )
            save_sign_in(save, state, warn=warn)
            count = quantity(len(state["cookies"]), "cookie")
            ends = "until its cookies expire or the site ends the session"
            err.print(f"[green]✓[/] saved as {save} ({count}); it works {ends}", soft_wrap=True)
        return 0

    raise typer.Exit(run(window))


@profile_app.command("list")
def list_() -> None:
    """List the profiles and the saved sign-ins."""
    from opentabs_py.browser.signed_in import profile_dir, profiles, sign_ins
    from opentabs_py.cli.terminal import err, out

    found = [*((name, str(profile_dir(name))) for name in profiles())]
    found += [(name, "saved sign-in") for name in sign_ins()]
    for name, what in found:
        out.print(f"{escape(name)}  [dim]{escape(what)}[/]", soft_wrap=True)
    if not found:
        err.print("No profiles and no sign-ins. Create one: opentabs login URL --profile NAME")


@profile_app.command()
def path(name: Annotated[str, typer.Argument(metavar="NAME", help="The profile's name.")]) -> None:
    """Print the directory of a profile, whether or not it exists."""
    from opentabs_py.browser.signed_in import profile_dir

    typer.echo(profile_dir(name))


@profile_app.command()
def remove(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The profile's or the sign-in's name.")
    ],
) -> None:
    """Remove a profile and the saved sign-in with this name."""
    from opentabs_py.browser.launch_plan import is_in_use
    from opentabs_py.browser.signed_in import profile_dir, remove_sign_in
    from opentabs_py.cli.terminal import err

    directory = profile_dir(name)
    if directory.is_dir() and is_in_use(directory):
        raise ConfigError(f"The profile {name!r} is in use by a browser. Close it first.")
    had_sign_in = remove_sign_in(name)
    if not (had_sign_in or directory.is_dir()):
        raise ConfigError(f"There is no profile and no sign-in named {name!r}.")
    if directory.is_dir():
        shutil.rmtree(directory)
    err.print(f"Removed {name}.")
