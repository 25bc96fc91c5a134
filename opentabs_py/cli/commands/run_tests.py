"""`opentabs test`: build a plugin and run its tests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from signal import strsignal
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from opentabs_py.cli.command_classes import Command
from opentabs_py.cli.exit_codes import CHAIN_FAILED, NO_TESTS, TOOL_FAILED, USAGE
from opentabs_py.core.runner.shard import parse_shard
from opentabs_py.errors import BuildError, OpenTabsError

if TYPE_CHECKING:
    from opentabs_py.cli.chosen_tests import ChosenTests
    from opentabs_py.plugins.build import Builder
    from opentabs_py.plugins.source_watch import SourceChanges

# Our exit code for each of pytest's; any other means that tests failed. An interrupted run (2) is
# one where pytest could not import a test file: on Ctrl-C, we interrupt pytest ourselves.
_CODES = {0: 0, 3: CHAIN_FAILED, 4: USAGE, 5: NO_TESTS}
_ENDINGS = {0: "[bold green]✓ passed[/]", NO_TESTS: "[bold yellow]no test was selected[/]"}
FUZZ_CALLS = 100  # as expect_contract() makes


def run_tests(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DIR|FILE|FILE::TEST|PYTEST_ARG",
            help=(
                "The plugin's directory (by default the current one) or some of its tests. Other "
                "arguments are passed to pytest."
            ),
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help=(
                "Rebuild and rerun at every change of the source or the tests, until Ctrl-C. A "
                "change stops the current run."
            ),
        ),
    ] = False,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui",
            help=(
                "Run the tests in a page, which opens in your browser: choose what runs, see each "
                "call with its screenshots, and run again at every change. At a failure, the "
                "tests' browser stays open until you continue there or press Enter here. Without a "
                "display, the tests' browser is headless. Ctrl-C stops everything."
            ),
        ),
    ] = False,
    repeat: Annotated[
        int | None,
        typer.Option("--repeat", min=1, metavar="N", help="Run each test in the browser N times."),
    ] = None,
    retries: Annotated[
        int | None,
        typer.Option(
            "--retries",
            min=0,
            metavar="N",
            help=(
                "Run a test that fails in the browser again, up to N times. If it then passes, it "
                "is reported as flaky."
            ),
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help=(
                "Run part I of N, so that N machines share the tests. Each test is in one part; "
                "those of a file stay together unless the file is larger than a part."
            ),
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help=(
                "Write one HTML file with the tests in the browser, their calls, faults and "
                "screenshots. `opentabs report merge` combines the reports of several parts."
            ),
        ),
    ] = None,
    fuzz: Annotated[
        int | None,
        typer.Option(
            "--fuzz",
            min=1,
            metavar="[N]",
            help=(
                "Instead of the tests, check what each tool with a readOnlyHint promises agents, "
                f"on the plugin's start page, with N inputs drawn from its schema ({FUZZ_CALLS} by "
                "default)."
            ),
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="With --fuzz: another seed draws other inputs.  \\[default: 0]",
        ),
    ] = None,
    writes: Annotated[
        bool,
        typer.Option("--writes", help="With --fuzz: check tools that may change something, too."),
    ] = False,
    no_open: Annotated[
        bool,
        typer.Option("--no-open", help="With --ui, only print the page's URL."),
    ] = False,
) -> None:
    """Build a plugin and run its tests: tests/*.test.ts in Node, all others with pytest.

    --last-failed, -k and all other options of pytest are passed through.

    Exit codes: 0 all passed; 1 the build or a test failed; 2 usage error; 3 cannot run tests here;
    5 no test was selected. With --watch or --ui, always 0.
    """
    from opentabs_py.cli.chosen_tests import choose
    from opentabs_py.cli.run import run

    chosen = choose(arguments or [])
    if fuzz is None and (seed is not None or writes):
        raise typer.BadParameter("--seed and --writes need --fuzz.")
    if shard is not None and parse_shard(shard) is None:
        raise typer.BadParameter(f"{shard} is not valid. Write I/N, such as --shard 1/4.")
    if fuzz is not None:
        chosen = to_fuzz(chosen, fuzz, seed=seed, writes=writes)
    chosen = replace(
        chosen,
        shard=shard,
        reports=report is not None,
        pytest_args=[
            *_given("--opentabs-repeat", repeat),
            *_given("--opentabs-retries", retries),
            *_given("--opentabs-shard", shard),
            *_given("--opentabs-report", report),
            *chosen.pytest_args,
        ],
    )
    if ui:
        from opentabs_py.cli.tests_page import show_tests

        if watch:
            raise typer.BadParameter(
                "--ui and --watch cannot be combined: --ui also reruns tests at every change."
            )
        if report is not None:
            raise typer.BadParameter(
                "--report and --ui cannot be combined: the page of --ui shows the same."
            )
        raise typer.Exit(run(lambda: show_tests(chosen, opens=not no_open), interruptible=False))
    suite = _Suite(chosen)
    raise typer.Exit(run(suite.watch, interruptible=False) if watch else run(suite.run))


@dataclass(frozen=True, slots=True)
class _Suite:
    """The selected tests of a plugin."""

    chosen: "ChosenTests"

    async def run(self) -> int:
        """Build the plugin and run its tests; return the exit code."""
        from opentabs_py.cli.building import builder_for

        async with builder_for(self.chosen.directory) as running:
            if not await self._build(running):
                return TOOL_FAILED
        return await self._test()

    async def watch(self) -> int:
        """Build and test, and again at each change, until cancelled."""
        from opentabs_py.cli.building import builder_for
        from opentabs_py.cli.terminal import print_error, print_rule
        from opentabs_py.plugins.source_watch import changed_text, next_source, watch_source

        directory = self.chosen.directory
        async with builder_for(directory) as running, watch_source(directory) as changes:
            why = "first run"
            while True:
                print_rule(f"[bold]{escape(why)}[/]")
                try:
                    is_built = await self._build(running)
                except BuildError as error:
                    print_error(error)
                    is_built = False
                if is_built:
                    changed = await self._test_until(changes)
                else:
                    changed = await next_source(changes)
                why = changed_text(changed)

    async def _build(self, running: "Builder | None") -> bool:
        from opentabs_py.cli.building import print_problems

        if running is None:
            return True
        built = await running.build(self.chosen.directory)
        print_problems(built)
        return not built.problems

    async def _test_until(self, changes: "SourceChanges") -> list[str]:
        """Run the tests until a file changes; return the changed files."""
        import anyio

        from opentabs_py.cli.terminal import err, print_error, print_rule
        from opentabs_py.plugins.source_watch import next_source

        ended = anyio.Event()
        changed: list[str] = []

        async def test() -> None:
            began = monotonic()
            try:
                code = await self._test()
            except OpenTabsError as error:
                print_error(error)
                code = CHAIN_FAILED
            ended.set()
            how = _ENDINGS.get(code, "[bold red]✗ failed[/]")
            seconds = f"{monotonic() - began:.1f} s"
            print_rule(f"{how} [dim]in {seconds}; waiting for changes, press Ctrl-C to stop[/]")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(test)
            changed = await next_source(changes)
            if not ended.is_set():
                err.print("[yellow]A file changed: stopping this run.[/]")
            tasks.cancel_scope.cancel()
        return changed

    async def _test(self) -> int:
        """Run the tests; return the exit code."""
        from opentabs_py.cli.terminal import err
        from opentabs_py.cli.test_runners import check_pytest, node_command
        from opentabs_py.runner.process import PYTEST, run_program, run_to_report

        units, in_browser = self.chosen.for_node(), self.chosen.for_pytest()
        failed = False
        if units:
            err.print("[bold]In Node[/]")
            command = node_command(units, *_given("--test-shard", self.chosen.shard))
            failed = await run_program(command) != 0
        code = 0
        if in_browser:
            err.print("[bold]In the browser[/]")
            check_pytest()
            pytest = [*PYTEST, *in_browser, *self.chosen.pytest_args]
            run_pytest = run_to_report if self.chosen.reports else run_program
            ended = await run_pytest(pytest)
            if ended < 0:
                err.print(f"\n[red]pytest was ended by signal {-ended}: {strsignal(-ended)}.[/]")
            code = _CODES.get(ended, TOOL_FAILED)
        elif self.chosen.reports:
            err.print("No report was written, because no browser tests ran.")
        if not (units or in_browser):
            err.print(f"There are no tests in {', '.join(self.chosen.paths)}.", soft_wrap=True)
            return NO_TESTS
        return TOOL_FAILED if failed else code


def to_fuzz(chosen: "ChosenTests", calls: int, *, seed: int | None, writes: bool) -> "ChosenTests":
    """Return what runs the checks of all tools instead of a plugin's tests."""
    if any(not Path(path).is_dir() for path in chosen.paths if path != chosen.everything):
        raise typer.BadParameter("--fuzz checks tools, not tests. Choose some with -k NAME.")
    if find_spec("hypothesis") is None:
        raise OpenTabsError(
            "--fuzz needs Hypothesis, which is not installed. Install it with "
            "`pip install 'opentabs-py[test]'`."
        )
    tests = chosen.directory / "tests"  # whose conftest.py prepares the site
    added = [
        f"--opentabs-fuzz={calls}",
        *_given("--opentabs-fuzz-seed", seed),
        *(["--opentabs-fuzz-writes"] if writes else []),
        "-rs",  # which tools are skipped, and why
    ]
    return replace(
        chosen,
        paths=[str(tests if tests.is_dir() else chosen.directory)],
        pytest_args=[*added, *chosen.pytest_args],
        fuzz=[
            *("--fuzz", str(calls)),
            *([] if seed is None else ["--seed", str(seed)]),
            *(["--writes"] if writes else []),
        ],
    )


def _given(option: str, value: object) -> list[str]:
    return [] if value is None else [f"{option}={value}"]


class TestCommand(Command):
    """The command; `--fuzz` may have a number after it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the number that `--fuzz` has by default."""
        return super().parse_args(ctx, with_calls(args))


def with_calls(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with a number after `--fuzz`."""
    whole: list[str] = []
    for argument, following in pairwise([*arguments, ""]):
        whole.append(argument)
        if argument == "--fuzz" and not following.isdecimal():
            whole.append(str(FUZZ_CALLS))
    return whole
