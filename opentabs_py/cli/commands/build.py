"""`opentabs build`: compile a plugin's source into the files that are served."""

from pathlib import Path
from typing import Annotated

import typer

from opentabs_py.cli.exit_codes import BUILD_FAILED
from opentabs_py.cli.options import Json, PluginDir
from opentabs_py.errors import BuildError, ConfigError


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

    Exit codes: 0 built; 1 the plugin has errors; 2 no such directory; 3 cannot build here (such as
    without Node).
    """
    from opentabs_py.cli.building import builder, print_result
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

    if not directory.is_dir():
        raise ConfigError(f"{directory} is not a directory. Name a plugin's, or create one first.")
    raise typer.Exit(run(forever, interruptible=False) if watch else run(once))
