"""Commands stop at any time on request, whatever their clients are waiting for."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.types import CallToolResult

from e2e.chain import PROBE
from e2e.mcp.drivers import Call, Outcome, drive
from e2e.processes import alive, descendants, is_alive
from e2e.waiting import PATIENT
from tests.server.test_stopping import Waiting, serving

OPENTABS = [sys.executable, "-m", "opentabs_py"]
STOPS_WITHIN = 20.0  # s; a quiet machine takes less than one. What a client waits for takes longer.
FOREVER = {"key": "stop", "steps": [{"report": {"progress": 1}}, {"wait": 60_000}]}
HELLO = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
)


def start(temporary: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """Run a server; yield it and its address once it serves."""
    command = [*OPENTABS, "serve", "--port", "0", "--plugin", str(PROBE), *options]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = {**os.environ, "TMPDIR": str(temporary)}
    serve = subprocess.Popen(command, text=True, env=environment, **pipes)
    assert serve.stderr is not None
    line = ""
    while "MCP at " not in line:
        line = serve.stderr.readline()
        assert serve.poll() is None, "it ended by itself"
    return serve, line.split("MCP at ")[1].strip()


def end(serve: subprocess.Popen[str], temporary: Path, how: signal.Signals | None) -> int:
    """Stop a server; return its exit code, once nothing of it is left."""
    children = descendants(serve.pid)
    assert len(children) > 3, "a Chromium has more processes than that"
    assert list(temporary.iterdir())
    if how is None:
        assert serve.stdin is not None
        serve.stdin.close()
    else:
        serve.send_signal(how)
    code = serve.wait(timeout=STOPS_WITHIN)
    assert alive(children) == {}
    assert list(temporary.iterdir()) == []
    assert serve.stderr is not None
    assert "Traceback" not in serve.stderr.read()
    return code


@pytest.mark.parametrize(("mode", "how"), [("auto", signal.SIGTERM), ("legacy", signal.SIGINT)])
async def test_over_http_it_answers_open_calls_and_stops_while_clients_have_streams_open(
    mode: str, how: signal.Signals, site: str, short_path: Path
) -> None:
    called = anyio.Event()
    answers: list[CallToolResult] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        called.set()

    # In a thread, because this one serves the site.
    opened = f"{site}/stop-{mode}"
    serve, url = await anyio.to_thread.run_sync(start, short_path, "--open", opened)
    with serve:

        async def call_for_ever() -> None:
            async with Client(url, mode=mode) as client:
                answers.append(await client.call_tool("probe_run", FOREVER, progress_callback=note))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call_for_ever)
            with anyio.fail_after(PATIENT):
                await called.wait()
            code = await anyio.to_thread.run_sync(end, serve, short_path, how)
    assert ["code=SERVER_STOPPED" in str(answer.content[0]) for answer in answers] == [True]
    assert code == 0


@pytest.mark.parametrize("kind", ["v1", "v2"])
async def test_a_client_of_typescript_does_not_wait_for_a_server_that_has_stopped(
    kind: str,
) -> None:
    waiting = Waiting()
    async with serving(waiting.wait) as (url, stop), drive(kind, url) as driver:
        outcomes: list[Outcome] = []

        async def call() -> None:
            outcomes.extend(await driver.call_all([Call("wait", {})]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await waiting.called.wait()
            stop("cancelled")
    [outcome] = outcomes
    assert outcome.result is not None, outcome.error
    assert "code=SERVER_STOPPED" in outcome.result["content"][0]["text"]


@pytest.mark.parametrize("how", [None, signal.SIGTERM, signal.SIGINT], ids=["eof", "term", "int"])
def test_over_stdio_it_stops_and_writes_nothing_but_protocol(
    how: signal.Signals | None, short_path: Path
) -> None:
    serve, _ = start(short_path, "--stdio")
    with serve:
        assert serve.stdin is not None
        assert serve.stdout is not None
        serve.stdin.write(HELLO)
        serve.stdin.flush()
        assert '"protocolVersion":"2025-11-25"' in serve.stdout.readline()
        code = end(serve, short_path, how)
        rest = serve.stdout.read()
    assert rest == ""
    assert code == 0


SERVE = ["serve", "--port", "0", "--plugin", str(PROBE)]
COMMANDS = {
    "serve": SERVE,
    "several": [*SERVE, "--browser", "one=one", "--browser", "two=two"],
    "demo": ["demo"],
}
MOMENTS = 24 if "SOAK" in os.environ else 2
# The command's own code, or the signal's where nothing had to be closed yet. A demo that is over
# before the signal comes has succeeded.
CODES = {
    ("serve", signal.SIGINT): {0, 130, -signal.SIGINT},
    ("serve", signal.SIGHUP): {0, -signal.SIGHUP},
    ("serve", signal.SIGTERM): {0, -signal.SIGTERM},
    ("several", signal.SIGINT): {0, 130, -signal.SIGINT},
    ("demo", signal.SIGINT): {0, 130, -signal.SIGINT},
    ("demo", signal.SIGHUP): {0, 129, -signal.SIGHUP},
}


@pytest.fixture(scope="module")
def start_takes(tmp_path_factory: pytest.TempPathFactory) -> float:
    """How long starting a server takes on this machine now, in seconds."""
    began = time.monotonic()
    serve, _ = start(tmp_path_factory.mktemp("start"))
    took = time.monotonic() - began
    with serve:
        serve.terminate()
        serve.communicate(timeout=STOPS_WITHIN)
    return took


@pytest.mark.parametrize("seed", range(MOMENTS))
@pytest.mark.parametrize(("name", "how"), CODES)
def test_a_signal_at_any_moment_of_the_start_ends_it_quietly_and_leaves_nothing(
    name: str,
    how: signal.Signals,
    seed: int,
    start_takes: float,
    short_path: Path,
    tmp_path: Path,
) -> None:
    moment = random.Random(f"{name} {how} {seed}").uniform(0.1, 1.1) * start_takes
    command = subprocess.Popen(
        [*OPENTABS, *COMMANDS[name]],
        cwd=tmp_path,
        text=True,
        env={**os.environ, "TMPDIR": str(short_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # like a terminal's job: signals reach everything that it started
    )
    with command:
        with suppress(subprocess.TimeoutExpired):
            command.wait(timeout=moment)
        children = descendants(command.pid)
        with suppress(ProcessLookupError):  # it was quicker
            # A terminal's signal reaches all of them; a service manager's, the one that it started.
            (os.kill if how is signal.SIGTERM else os.killpg)(command.pid, how)
        try:
            _, said = command.communicate(timeout=STOPS_WITHIN)
        finally:
            command.kill()
    # On a busy machine, Python itself may still be starting, before any code of ours.
    if "<frozen runpy>" not in said or ", in main\n" in said:
        assert "Traceback" not in said
        assert "Exception" not in said
        assert command.returncode in CODES[name, how], said
    assert list(short_path.iterdir()) == []
    deadline = time.monotonic() + PATIENT
    while any(is_alive(pid) for pid in children):
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.01)
