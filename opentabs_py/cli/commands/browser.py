"""`opentabs browser`: find or install Chromium."""

import signal

import typer

from opentabs_py.cli.command_classes import App

app = App(help="Find or install the Chromium that opentabs uses.")


@app.command()
def path() -> None:
    """Print the path of the Chromium that opentabs launches."""
    from opentabs_py.browser.chromium import configured_chromium
    from opentabs_py.config.settings import load_settings

    typer.echo(configured_chromium(load_settings()))


@app.command()
def install() -> None:
    """Install Chromium, unless a usable one is already installed.

    Tries Playwright's download first, then the Debian or Ubuntu package if you have permission to
    install it.
    """
    from opentabs_py.browser.install import install_chromium

    # On KeyboardInterrupt it stops what it started and removes incomplete files.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    chromium = install_chromium(lambda line: typer.echo(line, err=True))
    typer.echo(f"{chromium.path} ({chromium.source})")
