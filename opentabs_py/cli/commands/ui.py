"""`opentabs ui`: open the console of a running server."""

from typing import Annotated

import typer

from opentabs_py.cli.options import NamedServer


def ui(
    name: NamedServer = "default",
    print_: Annotated[
        bool,
        typer.Option("--print", help="Print the URL instead of opening it in your browser."),
    ] = False,
) -> None:
    """Open the console: a web page that shows a running server live.

    It has the plugins, calls, tabs and logs, and a form to try each tool. The URL lets one
    browser in, once, within ten minutes.
    """
    import webbrowser

    from opentabs_py.cli.terminal import err, write_result
    from opentabs_py.daemon.local_client import LocalClient
    from opentabs_py.daemon.state import require_state

    # A browser is started with the URL, which other users of this machine can read, too.
    url = LocalClient(require_state(name)).console_url(for_own_user=not print_)
    if print_:
        write_result(url)
    elif not webbrowser.open(url):
        err.print("Cannot open a browser here. Open this URL yourself:")
        write_result(url)
