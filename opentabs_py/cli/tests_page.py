"""`opentabs test --ui`: the tests in a page."""

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentabs_py.cli.chosen_tests import ChosenTests
    from opentabs_py.plugins.source_watch import SourceChanges
    from opentabs_py.runner.runner import Runner


async def show_tests(chosen: "ChosenTests", *, opens: bool) -> int:
    """Run the tests, and again whenever the user asks or a file changes, until cancelled.

    Args:
        chosen: The tests.
        opens: Whether the page is opened in the user's browser.
    """
    import anyio

    from opentabs_py.browser.screen import has_screen
    from opentabs_py.cli.building import builder_for, print_problems
    from opentabs_py.cli.terminal import err
    from opentabs_py.cli.test_runners import check_pytest, node_command
    from opentabs_py.console.access import Access
    from opentabs_py.plugins.source_watch import watch_source
    from opentabs_py.runner.app import RunnerPage
    from opentabs_py.runner.runner import BuildProblem, Runner, Suite
    from opentabs_py.server.http.listen import bind
    from opentabs_py.server.http.serve import serve_http

    check_pytest()
    headed = "--headed" in chosen.pytest_args or has_screen()
    if not headed:
        err.print("There is no screen here, so the tests' browser is headless.", soft_wrap=True)
    async with AsyncExitStack() as stack:
        scratch = Path(
            await stack.enter_async_context(anyio.TemporaryDirectory(prefix="opentabs-"))
        )
        running = await stack.enter_async_context(builder_for(chosen.directory))

        async def build() -> list[BuildProblem]:
            if running is None:
                return []
            built = await running.build(chosen.directory)
            print_problems(built)
            return [BuildProblem(each.place, each.text) for each in built.problems]

        suite = Suite(
            directory=chosen.directory,
            paths=chosen.for_pytest(),
            pytest_args=page_args(chosen.pytest_args, headed=headed),
            fuzz=chosen.fuzz,
            units=chosen.for_node,
            unit_command=lambda file: node_command([file], quiet=True),
            build=build,
            headed=headed,
            terminal=sys.stdin.isatty(),
        )
        changes = await stack.enter_async_context(watch_source(chosen.directory))
        runner = Runner(suite, scratch)
        listener = bind("127.0.0.1", 0)
        port: int = listener.getsockname()[1]
        page = RunnerPage(runner, Access(port, anyio.current_time), scratch)
        await stack.enter_async_context(serve_http(page.app(), listener, on_stop=page.stop))

        def address(*, for_own_user: bool = False) -> str:
            token = page.access.invite(expires=False, for_own_user=for_own_user)
            return f"http://127.0.0.1:{port}/?token={token}"

        err.print(f"[bold]Tests at[/] {address()}", soft_wrap=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_follow, runner, changes)
            if opens:
                # A browser is started with the URL, which other users of this machine can read.
                tasks.start_soon(_open, address(for_own_user=True))
            await runner.run()
    return 0


def page_args(pytest_args: Sequence[str], *, headed: bool) -> list[str]:
    """Return pytest's arguments with those that `--ui` adds."""
    added = ["--opentabs-ui"]
    if headed and "--headed" not in pytest_args:
        added.append("--headed")
    if find_spec("pytest_timeout") is not None:
        added.append("--timeout=0")  # users take as long as they like
    last = ["-n0"] if find_spec("xdist") is not None else []  # one after the other, to be followed
    return [*added, *pytest_args, *last]


async def _follow(runner: "Runner", changes: "SourceChanges") -> None:
    from opentabs_py.plugins.source_watch import changed_text, next_source

    while True:
        files = await next_source(changes)
        runner.handle_change(files, changed_text(files))


async def _open(url: str) -> None:
    import webbrowser

    import anyio.to_thread

    from opentabs_py.cli.terminal import err

    if not await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True):
        err.print("Cannot open a browser here. Open the URL above yourself.")
