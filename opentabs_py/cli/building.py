"""Build plugins, and print how that went: for all commands that build."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from opentabs_py.core.plugins.file_names import ADAPTER
from opentabs_py.core.text import quantity

if TYPE_CHECKING:
    from opentabs_py.plugins.build import Builder, Built
    from opentabs_py.plugins.toolchain import Toolchain


@asynccontextmanager
async def builder(*, quiet: bool = False) -> AsyncGenerator["Builder"]:
    """Start the builder, after installing whatever it needs and showing progress."""
    import anyio

    from opentabs_py.plugins.build import start_builder

    toolchain = await anyio.to_thread.run_sync(lambda: show_toolchain(quiet=quiet))
    async with start_builder(toolchain) as running:
        yield running


def builder_for(directory: Path) -> AbstractAsyncContextManager["Builder | None"]:
    """Start the builder if a directory holds source; without, there is nothing to install."""
    from opentabs_py.plugins.freshness import has_source

    return builder() if has_source(directory) else nullcontext()


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
