"""`opentabs new`: create a plugin."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape


def new(
    name: Annotated[str, typer.Argument(help="The plugin's name, as in my-chat.")],
    js: Annotated[
        bool, typer.Option("--js", help="Generate JavaScript instead of TypeScript.")
    ] = False,
    into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory to create.  \\[default: ./NAME]"),
    ] = None,
) -> None:
    """Create a plugin: a tool that reports progress, its tests, and a page to try it on.

    [dim]opentabs new chat && cd chat && opentabs build && opentabs call chat_hello '{}'[/]
    """
    from opentabs_py.cli.build import show_toolchain
    from opentabs_py.cli.terminal import err
    from opentabs_py.errors import BuildError
    from opentabs_py.plugins.links import link_packages
    from opentabs_py.plugins.scaffold import scaffold

    directory = into or Path(name)
    files = scaffold(name, directory, language="js" if js else "ts")
    err.print(f"[bold green]✓[/] {escape(str(directory))}/", soft_wrap=True)
    for file in files:
        err.print(f"    [dim]{escape(str(file))}[/]", soft_wrap=True)
    try:
        link_packages(directory, show_toolchain().packages)
    except BuildError as error:
        err.print(f"\n[yellow]Cannot build it here yet.[/] {escape(str(error))}", soft_wrap=True)
    tool = f"{name.replace('-', '_')}_hello"
    err.print(
        f"\nNext:\n  cd {escape(str(directory))}\n  opentabs build\n  opentabs call {tool} '{{}}'\n"
        "  opentabs test",
        soft_wrap=True,
    )
