"""`opentabs test`: a plugin's own tests."""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from opentabs_py.cli.codes import TOOL_FAILED
from opentabs_py.errors import BrowserError, BuildError

if TYPE_CHECKING:
    from opentabs_py.plugins.build import Builder
    from opentabs_py.plugins.source import SourceChanges

UNIT_TESTS = ("*.test.ts", "*.test.js", "*.test.mjs")
NOTHING_COLLECTED = 5  # pytest's exit code for it
SLOW_MOTION = 250  # ms before each step that --ui shows; a person can follow that
STOP_WITHIN = 10.0  # s; pytest closes its browser in half of one
SHOWN = 3  # names of files that changed

# Of a plugin's directory, what its tests go by: reports that pytest writes there are not of it.
_SOURCE_DIRS = frozenset({"src", "tests", "playground"})
_SOURCE_SUFFIXES = frozenset({".py", ".ts", ".js", ".mjs", ".json", ".toml", ".ini", ".cfg"})


def run_tests(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DIR] [PYTEST ARGS]",
            help="The plugin's directory, this one by default; the rest is passed on to pytest.",
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help=(
                "Build and run all again at every change of the source or the tests, until "
                "Ctrl-C. A change ends a run that is under way."
            ),
        ),
    ] = False,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui",
            help=(
                "Show the browser, slowly, and keep it open at a failure until Enter is pressed. "
                f"The same as --headed --slowmo {SLOW_MOTION} --opentabs-ui, which pytest takes; "
                "give another --slowmo for another pace. Needs a screen and a terminal."
            ),
        ),
    ] = False,
) -> None:
    """Build a plugin and run its tests: tests/*.test.ts in Node, the others with pytest.

    Exit codes: 0 all passed, 1 the build or a test failed, 2 usage, 3 nothing can be run here;
    with --watch 0.
    """
    from opentabs_py.cli.run import run

    pytest_args = list(arguments or [])
    has_directory = bool(pytest_args) and Path(pytest_args[0]).is_dir()
    directory = Path(pytest_args.pop(0)) if has_directory else Path()
    if ui:
        _check_ui(watch=watch)
        pytest_args = [*ui_args(pytest_args), *pytest_args]
    suite = _Suite(directory, pytest_args)
    raise typer.Exit(run(suite.watch, interruptible=False) if watch else run(suite.run))


@dataclass(frozen=True, slots=True)
class _Suite:
    """A plugin's tests.

    Attributes:
        directory: The plugin's.
        pytest_args: What pytest is given besides.
    """

    directory: Path
    pytest_args: Sequence[str]

    async def run(self) -> int:
        """Build the plugin and run its tests; give the exit code."""
        from opentabs_py.cli.build import builder
        from opentabs_py.plugins.build import has_source

        if has_source(self.directory):
            async with builder() as running:
                if not await self._build(running):
                    return TOOL_FAILED
        return await self._test()

    async def watch(self) -> int:
        """Do so, and again at each change, until cancelled."""
        from opentabs_py.cli.build import builder
        from opentabs_py.cli.terminal import err
        from opentabs_py.plugins.source import watch_source

        async with builder() as running, watch_source(self.directory) as changes:
            why = "first run"
            while True:
                err.rule(f"[bold]{escape(why)}[/]")
                if await self._build(running):
                    changed = await self._test_until(changes)
                else:
                    changed = await _next_source(changes)
                why = changed_text(changed)

    async def _build(self, running: "Builder") -> bool:
        from opentabs_py.cli.build import tell_faults
        from opentabs_py.plugins.build import has_source

        if not has_source(self.directory):
            return True
        built = await running.build(self.directory)
        tell_faults(built)
        return not built.faults

    async def _test_until(self, changes: "SourceChanges") -> list[str]:
        """Run the tests and wait for a change, which ends them; give the files that changed."""
        import anyio

        from opentabs_py.cli.terminal import err

        ended = anyio.Event()
        changed: list[str] = []

        async def test() -> None:
            began = monotonic()
            code = await self._test()
            ended.set()
            how = "[bold red]✗ failed[/]" if code else "[bold green]✓ passed[/]"
            seconds = f"{monotonic() - began:.1f} s"
            err.rule(f"{how} [dim]in {seconds}; waiting for a change, Ctrl-C ends it[/]")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(test)
            changed = await _next_source(changes)
            if not ended.is_set():
                err.print("[yellow]Something changed: this run is broken off.[/]")
            tasks.cancel_scope.cancel()
        return changed

    async def _test(self) -> int:
        """Run the tests; give the exit code."""
        from opentabs_py.cli.terminal import err
        from opentabs_py.plugins.toolchain import find_node

        tests = self.directory / "tests"
        units = sorted(str(file) for pattern in UNIT_TESTS for file in tests.rglob(pattern))
        in_browser = any(tests.rglob("test_*.py"))
        failed = False
        if units:
            err.print("[bold]In Node[/]")
            node, _ = find_node()
            failed |= await _run([str(node), "--test", *units]) != 0
        if in_browser:
            err.print("[bold]In the browser[/]")
            if find_spec("pytest") is None:
                raise BuildError(
                    "pytest is missing. Get it with `pip install 'opentabs-py[test]'`."
                )
            code = await _run([sys.executable, "-m", "pytest", str(tests), *self.pytest_args])
            failed |= code not in (0, NOTHING_COLLECTED)
        if not (units or in_browser):
            err.print(f"There are no tests in {tests}.")
        return TOOL_FAILED if failed else 0


async def _run(command: Sequence[str]) -> int:
    """Run a program to its end; one that is cancelled is interrupted, as by Ctrl-C, and waited for.

    It has a session of its own: a terminal's Ctrl-C comes to us alone, and to it but once.
    """
    import anyio

    from opentabs_py.config import STARTED_BY

    process = await anyio.open_process(
        command,
        stdin=None,
        stdout=None,
        stderr=None,
        start_new_session=True,
        env={**os.environ, STARTED_BY: str(os.getpid())},
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGINT)
            with anyio.move_on_after(STOP_WITHIN, shield=True):
                await process.wait()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)


async def _next_source(changes: "SourceChanges") -> list[str]:
    while True:
        if files := [file for file in await changes.next() if is_source(file)]:
            return files


def is_source(file: str) -> bool:
    """Tell whether tests go by a file of a plugin's directory; by what they write they do not."""
    path = Path(file)
    if len(path.parts) == 1:
        return path.suffix in _SOURCE_SUFFIXES
    return path.parts[0] in _SOURCE_DIRS


def changed_text(files: Sequence[str]) -> str:
    """Say which files changed, in a line."""
    more = f" and {len(files) - SHOWN} more" if len(files) > SHOWN else ""
    return f"{', '.join(files[:SHOWN])}{more} changed"


def _check_ui(*, watch: bool) -> None:
    if watch:
        raise typer.BadParameter("--ui waits at a failure, --watch does not. Take one of them.")
    if not sys.stdin.isatty():
        raise typer.BadParameter(
            "--ui needs a terminal, to be told when to go on, and stdin is none. Take --headed to "
            "watch the tests, or --tracing=retain-on-failure to see afterwards what happened."
        )
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if sys.platform == "linux" and not has_screen:
        raise BrowserError(
            "There is no screen to show a window on: neither DISPLAY nor WAYLAND_DISPLAY is set. "
            "Take a virtual one, `xvfb-run -a opentabs test --ui`, or leave out --ui."
        )


def ui_args(pytest_args: Sequence[str]) -> list[str]:
    """Give what `--ui` adds to the arguments of pytest."""
    added = ["--opentabs-ui", "--headed"]
    if not any(each.split("=")[0] == "--slowmo" for each in pytest_args):
        added.append(f"--slowmo={SLOW_MOTION}")
    if find_spec("pytest_timeout") is not None:
        added.append("--timeout=0")  # a person takes as long as he likes
    return added
