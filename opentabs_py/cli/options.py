"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

import typer

PluginDirs = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", metavar="DIR", help="A built plugin's directory. Can be given several times."
    ),
]
OpenUrls = Annotated[
    list[str] | None,
    typer.Option("--open", metavar="URL", help="Open this page first. Can be given several times."),
]
IdleTimeout = Annotated[
    float | None,
    typer.Option(metavar="S", help="Seconds of silence that end a call.  \\[default: 30]"),
]
Ceiling = Annotated[
    float | None,
    typer.Option(
        metavar="S", help="Seconds a call may take, whatever it reports.  \\[default: 300]"
    ),
]
Headed = Annotated[bool | None, typer.Option("--headed/--headless", help="Show the browser.")]
Profile = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The browser's profile, to stay signed in.  \\[default: a fresh one]"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document to stdout.")]
