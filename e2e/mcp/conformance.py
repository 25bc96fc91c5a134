"""`make conformance`: the official suite for MCP servers against `opentabs serve`.

Each requirement set is run as it was frozen when its revision of the specification was published,
together with what the suite runs but does not count. The tools that it requires belong to two
plugins, and run in a page of a real Chromium; those that return images, audio and resources are
written in Python. `conformance.yml` lists what is intentionally not supported, with the reasons;
the suite reads that file too, and has to agree.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated

import anyio
import anyio.abc
import typer
from anyio.streams.text import TextReceiveStream
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from e2e.mcp.node import node_command
from e2e.on_disk import write_plugin
from e2e.waiting import PATIENT
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http

HERE = Path(__file__).parent
BASELINE = HERE / "conformance.yml"
TOOLS = HERE / "conformance_tools.py"
PLUGINS = [HERE.parent / "plugins" / name for name in ("conformance", "conformance-json")]
REVISIONS = ("2025-11-25", "2026-07-28")
RESULTS = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the suite.

    Attributes:
        status: `SUCCESS`, `FAILURE`, `WARNING` (a SHOULD is broken), `SKIPPED` or `INFO`.
    """

    scenario: str
    id: str
    status: str
    message: str

    @property
    def name(self) -> str:
        return f"{self.scenario}:{self.id}"

    @property
    def failed(self) -> bool:
        return self.status in ("FAILURE", "WARNING")


@dataclass(frozen=True, slots=True)
class Expected:
    """An entry of the baseline: a check that may fail, or each of a scenario's."""

    name: str
    reason: str

    def covers(self, check: Check) -> bool:
        return self.name in (check.name, check.scenario)


@dataclass(frozen=True, slots=True)
class Run:
    """The run of one requirement set.

    Attributes:
        agreed: Whether the suite itself passed, given the baseline.
        output: What it printed.
    """

    revision: str
    checks: tuple[Check, ...]
    agreed: bool
    output: str
    seconds: float

    @property
    def scenarios(self) -> dict[str, list[Check]]:
        return {
            name: list(checks)
            for name, checks in groupby(self.checks, lambda check: check.scenario)
        }

    @property
    def whole(self) -> list[str]:
        """The scenarios without failures."""
        return [
            name for name, checks in self.scenarios.items() if not any(c.failed for c in checks)
        ]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The differences from the baseline.

    Attributes:
        unexpected: Checks that failed without an entry, each after its revision.
        stale: Entries without a failure.
        disagreed: Runs that failed according to the suite itself, which counts fewer checks.
    """

    unexpected: tuple[tuple[str, Check], ...]
    stale: tuple[Expected, ...]
    disagreed: tuple[Run, ...]

    @property
    def good(self) -> bool:
        return not (self.unexpected or self.stale or self.disagreed)


def read_baseline(text: str) -> list[Expected]:
    """Read the entries; the comment above a group is the reason of each."""
    entries: list[Expected] = []
    comment: list[str] = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith("#"):
            comment.append(line.lstrip("# "))
        elif line.startswith("- "):
            reason = " ".join(comment) or entries[-1].reason
            entries.append(Expected(line.removeprefix("- "), reason))
            comment = []
        else:
            comment = []
    return entries


def judge(runs: Sequence[Run], baseline: Sequence[Expected]) -> Verdict:
    """Compare the failures with the expected ones."""
    failed = [(run.revision, check) for run in runs for check in run.checks if check.failed]
    unexpected = [
        (revision, check)
        for revision, check in failed
        if not any(entry.covers(check) for entry in baseline)
    ]
    stale = [entry for entry in baseline if not any(entry.covers(check) for _, check in failed)]
    disagreed = [run for run in runs if not run.agreed]
    return Verdict(tuple(unexpected), tuple(stale), tuple(disagreed))


# --- running ---


async def run_suite(directory: Path, baseline: Path = BASELINE) -> list[Run]:
    """Run all requirement sets; the suite leaves its files in the directory."""
    async with serve_site(directory / "rebuilt") as (site, rebuilt):
        plugins = [f"--plugin={plugin}" for plugin in (*PLUGINS, rebuilt)]
        async with serve_tools("--open", site, "--tools", str(TOOLS), *plugins) as url:
            return [
                await run_requirements(url, revision, directory / revision, baseline)
                for revision in REVISIONS
            ]


async def run_requirements(url: str, revision: str, directory: Path, baseline: Path) -> Run:
    command = [*node_command("conformance"), "server", "--url", url, "--requirements", revision]
    command += ["--expected-failures", str(baseline), "--output-dir", str(directory)]
    began = time.perf_counter()
    done = await anyio.run_process(command, check=False, stderr=subprocess.STDOUT)
    seconds = time.perf_counter() - began
    checks = tuple(read_checks(directory))
    return Run(revision, checks, done.returncode == 0, done.stdout.decode(), seconds)


def read_checks(directory: Path) -> list[Check]:
    """Read the suite's files, grouped by scenario."""
    checks = []
    for path in sorted(directory.glob("*/checks.json")):
        named = RESULTS.fullmatch(path.parent.name)
        assert named is not None, path
        checks += [
            Check(named["scenario"], found["id"], found["status"], found.get("errorMessage", ""))
            for found in json.loads(path.read_text())
        ]
    return checks


@asynccontextmanager
async def serve_site(plugin: Path) -> AsyncGenerator[tuple[str, Path]]:
    """A page for the tools, and a plugin that is rebuilt when a tool requests it."""
    version = 0

    async def page(_request: Request) -> Response:
        return HTMLResponse("<!doctype html><title>conformance</title><body>a page")

    async def rebuild(_request: Request) -> Response:
        nonlocal version
        version += 1
        write_plugin(plugin, tools=[f"v{version}"])
        return Response(status_code=204)

    write_plugin(plugin, tools=["v0"])
    listener = bind("127.0.0.1", 0)
    routes = [Route("/", page), Route("/rebuild", rebuild, methods=["POST"])]
    async with serve_http(Starlette(routes=routes), listener):
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/", plugin


@asynccontextmanager
async def serve_tools(*options: str) -> AsyncGenerator[str]:
    """Run `opentabs serve` with its own Chromium; yield the address for MCP clients."""
    command = [sys.executable, "-m", "opentabs_py", "serve", "--port", "0", *options]
    async with (
        await anyio.open_process(command, stdout=None) as process,
        anyio.create_task_group() as tasks,
    ):
        assert process.stderr is not None
        address = await tasks.start(_read_log, TextReceiveStream(process.stderr))
        try:
            yield address
        finally:
            process.terminate()


async def _read_log(
    log: TextReceiveStream, *, task_status: anyio.abc.TaskStatus[str] = anyio.TASK_STATUS_IGNORED
) -> None:
    # Read to its end: a program whose log nobody reads blocks once the pipe is full.
    said = ""
    started = False
    with anyio.CancelScope(deadline=anyio.current_time() + PATIENT) as patience:
        async for text in log:
            said += text
            if not started and (found := re.search(r"MCP at (\S+)\n", said)):
                started = True
                patience.deadline = float("inf")
                task_status.started(found[1])
    if not started:
        raise RuntimeError(f"`opentabs serve` did not start:\n{said}")


# --- showing ---


def show(runs: Sequence[Run], baseline: Sequence[Expected], verdict: Verdict) -> None:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    for run in runs:
        passed = sum(check.status == "SUCCESS" for check in run.checks)
        whole = f"{len(run.whole)} of {len(run.scenarios)} scenarios whole"
        console.print(
            f"[bold]MCP {run.revision}[/]: {passed} checks passed, {whole} "
            f"[dim]({run.seconds:.1f} s)[/]"
        )
        console.print(_scenarios_of(run, baseline))
    console.print(_problems_of(verdict))
    if verdict.good:
        console.print(f"[green]Nothing failed but what is in e2e/{BASELINE.name}.[/]")
    elif not (verdict.unexpected or verdict.stale):
        for run in verdict.disagreed:
            console.print(run.output, markup=False)


def _scenarios_of(run: Run, baseline: Sequence[Expected]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_row("[green]✓[/]", ", ".join(run.whole))
    for reason, entries in groupby(baseline, lambda entry: entry.reason):
        group = list(entries)
        known = [c.scenario for c in run.checks if c.failed and any(e.covers(c) for e in group)]
        if known:
            table.add_row("[yellow]–[/]", f"{reason}\n[dim]{', '.join(dict.fromkeys(known))}[/]")
    table.add_row()
    return table


def _problems_of(verdict: Verdict) -> Table:
    table = Table.grid(padding=(0, 1))
    for revision, check in verdict.unexpected:
        said = escape(check.message or check.status)
        table.add_row("[red]✗[/]", f"{revision} [bold]{check.name}[/]\n{said}")
    for entry in verdict.stale:
        said = "It does not fail any more; take it out of the baseline."
        table.add_row("[red]✗[/]", f"[bold]{entry.name}[/]\n{said}")
    return table


def main(
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the suite's own files here.")
    ] = None,
) -> None:
    """Run the official MCP conformance suite; exits with 1 if it differs from the baseline."""
    with tempfile.TemporaryDirectory() as directory:
        runs = anyio.run(run_suite, output or Path(directory))
    baseline = read_baseline(BASELINE.read_text())
    verdict = judge(runs, baseline)
    show(runs, baseline, verdict)
    raise typer.Exit(0 if verdict.good else 1)


if __name__ == "__main__":
    typer.run(main)
