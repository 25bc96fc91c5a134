"""`opentabs test`: a plugin's own tests."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from opentabs_py.cli.codes import TOOL_FAILED

UNIT_TESTS = ("*.test.ts", "*.test.js", "*.test.mjs")
NOTHING_COLLECTED = 5  # pytest's exit code for it


def run_tests(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DIR] [PYTEST ARGS]",
            help="The plugin's directory, this one by default; the rest is passed on to pytest.",
        ),
    ] = None,
) -> None:
    """Build a plugin and run its tests: tests/*.test.ts in Node, the others with pytest.

    Exit codes: 0 all passed, 1 the build or a test failed, 2 usage, 3 nothing can be run here.
    """
    from opentabs_py.cli.build import builder, tell_faults
    from opentabs_py.cli.run import run
    from opentabs_py.cli.terminal import err
    from opentabs_py.errors import BuildError
    from opentabs_py.plugins.build import has_source
    from opentabs_py.plugins.toolchain import find_node

    pytest_args = list(arguments or [])
    has_directory = bool(pytest_args) and Path(pytest_args[0]).is_dir()
    directory = Path(pytest_args.pop(0)) if has_directory else Path()

    async def build() -> int:
        async with builder() as running:
            built = await running.build(directory)
            tell_faults(built)
            return TOOL_FAILED if built.faults else 0

    if has_source(directory) and run(build) != 0:
        raise typer.Exit(TOOL_FAILED)
    tests = directory / "tests"
    failed = False
    units = sorted(str(file) for pattern in UNIT_TESTS for file in tests.rglob(pattern))
    if units:
        err.print("[bold]In Node[/]")
        node, _ = find_node()
        failed |= subprocess.run([node, "--test", *units], check=False).returncode != 0
    if any(tests.rglob("test_*.py")):
        err.print("[bold]In the browser[/]")
        if find_spec("pytest") is None:
            raise BuildError("pytest is missing. Get it with `pip install 'opentabs-py[test]'`.")
        command = [sys.executable, "-m", "pytest", str(tests), *pytest_args]
        code = subprocess.run(command, env=dict(os.environ), check=False).returncode
        failed |= code not in (0, NOTHING_COLLECTED)
    elif not units:
        err.print(f"There are no tests in {tests}.")
    raise typer.Exit(TOOL_FAILED if failed else 0)
