"""`opentabs browser`: the Chromium that is used."""

import signal

import typer

app = typer.Typer(help="Find or install the Chromium that is used.", no_args_is_help=True)


@app.command()
def path() -> None:
    """Print the path of the Chromium that will be launched."""
    from opentabs_py.browser.chromium import configured_chromium
    from opentabs_py.config import load_settings

    typer.echo(configured_chromium(load_settings()))


@app.command()
def install() -> None:
    """Install a Chromium unless there is one that can be used.

    Tries Playwright's download, then the package of Debian or Ubuntu where that is allowed.
    """
    from opentabs_py.browser.install import install_chromium

    # It ends what it has started and removes what is incomplete.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    chromium = install_chromium(lambda line: typer.echo(line, err=True))
    typer.echo(f"{chromium.path} ({chromium.source})")
