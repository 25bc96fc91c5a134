"""`opentabs build`: compile a plugin's source into the files that are served."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from opentabs_py.cli.exit_codes import BUILD_FAILED
from opentabs_py.cli.options import Json, PluginDir
from opentabs_py.core.plugins.file_names import ADAPTER
from opentabs_py.core.text import quantity
from opentabs_py.errors import BuildError

if TYPE_CHECKING:
    from opentabs_py.plugins.build import Builder, Built
    from opentabs_py.plugins.toolchain import Toolchain


def build(
    directory: PluginDir = Path(),
    watch: Annotated[
        bool, typer.Option("--watch", help="Rebuild at every change, until Ctrl-C.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Check types too, if TypeScript is installed (npm install -D typescript).",
        ),
    ] = True,
    json_: Json = False,
) -> None:
    """Build a plugin: compile src/index.ts (or .js) into dist/.

    Reports every error at once, each with its file and line. If there are any, dist/ is unchanged.
    A running `opentabs serve` loads the new version into its open tabs.

    Exit codes: 0 built; 1 the plugin has errors; 3 cannot build here (no Node).
    """
    from opentabs_py.cli.run import run

    async def once() -> int:
        async with builder(quiet=json_) as running:
            built = await running.build(directory, with_types=check)
            print_result(built, as_json=json_)
            return BUILD_FAILED if built.problems else 0

    async def forever() -> int:
        from opentabs_py.cli.terminal import err, print_error
        from opentabs_py.plugins.source_watch import watch_source

        async with builder(quiet=json_) as running, watch_source(directory) as changes:
            while True:
                try:
                    print_result(await running.build(directory, with_types=check), as_json=json_)
                except BuildError as error:
                    print_error(error)
                if not json_:
                    err.print("[dim]Waiting for changes. Press Ctrl-C to stop.[/]")
                await changes.next()

    raise typer.Exit(run(forever, interruptible=False) if watch else run(once))


@asynccontextmanager
async def builder(*, quiet: bool = False) -> AsyncGenerator["Builder"]:
    """Start the builder, after installing whatever it needs and showing progress."""
    import anyio

    from opentabs_py.plugins.build import start_builder

    toolchain = await anyio.to_thread.run_sync(lambda: show_toolchain(quiet=quiet))
    async with start_builder(toolchain) as running:
        yield running


def show_toolchain(*, quiet: bool = False) -> "Toolchain":
    """Return the toolchain, after installing whatever is missing and showing progress.

    Raises:
        BuildError: There is no Node, or npm could not install the rest.
    """
    from opentabs_py.cli.terminal import err, progress_bar
    from opentabs_py.config.paths import data_dir
    from opentabs_py.plugins.toolchain import find_toolchain

    with progress_bar("Starting the builder", quiet=quiet) as bar:

        def say(what: str) -> None:
            bar.say(what)
            if not err.is_terminal and not quiet:
                err.print(what, soft_wrap=True)

        return find_toolchain(data_dir=data_dir(), say=say)


def print_problems(built: "Built") -> None:
    """Print a plugin's errors and warnings, file by file."""
    from opentabs_py.cli.terminal import err

    kinds = (("yellow", "warning: ", built.warnings), ("red", "", built.problems))
    for colour, kind, problems in kinds:
        for problem in problems:
            text = f"[bold {colour}]{escape(problem.place)}[/]"
            text += f" [cyan]{escape(problem.subject)}[/]" if problem.subject else ""
            err.print(f"{text}\n    {kind}{escape(problem.why)}", soft_wrap=True)
    if built.problems:
        count = len(built.problems)
        err.print(f"[bold red]✗[/] {quantity(count, 'error')}; dist/ is unchanged", soft_wrap=True)


def print_result(built: "Built", *, as_json: bool = False) -> None:
    """Print the outcome of a build."""
    from opentabs_py.cli.terminal import err, write_json

    if as_json:
        document = {
            "ok": not built.problems,
            "directory": str(built.directory),
            "plugin": built.name,
            "tools": built.tools,
            "changed": built.changed,
            "sizes": dict(built.sizes),
            "seconds": round(built.seconds, 3),
            "problems": [asdict(problem) for problem in built.problems],
            "warnings": [asdict(problem) for problem in built.warnings],
        }
        write_json(document)
        return
    print_problems(built)
    if not built.problems:
        tools = quantity(len(built.tools), "tool")
        size = built.sizes[ADAPTER] / 1000
        state = f"adapter {size:.0f} kB" if built.changed else "nothing changed"
        err.print(
            f"[bold green]✓[/] {escape(built.name)}: {tools}, {state} "
            f"[dim]({built.seconds:.2f} s)[/]",
            soft_wrap=True,
        )
