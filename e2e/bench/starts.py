"""What the bench measures in separate processes: starts, ends, the test kit, builds."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from e2e.bench.floor.prototype import fresh_page_ms
from e2e.chain import PROBE
from e2e.kit.runs import run_kit
from opentabs_py.browser.driver import compile_cache
from opentabs_py.plugins.scaffold import scaffold

STARTS = 3
REBUILDS = 9

FIRST_RESULT = """
import sys, anyio
from opentabs_py import OpenTabs
async def main(plugin, url):
    async with OpenTabs(plugins=[plugin]) as tabs:
        await tabs.open(url)
        print(await tabs.call("probe_echo", {"value": 1}), flush=True)
anyio.run(main, *sys.argv[1:], backend_options={"use_uvloop": sys.platform != "win32"})
"""


async def cold_start(chromium: Path, url: str) -> dict[str, float]:
    """Separate processes, with the files of Python and Chromium in the system's cache."""
    first_results, first_floors = [], []
    for _ in range(STARTS):  # interleaved, so that noise hits both alike
        first_results.append(await seconds_to_echo("-c", FIRST_RESULT, str(PROBE), url))
        prototype = ("-m", "e2e.bench.floor.prototype", str(chromium), url)
        with compile_cache():  # as ours
            first_floors.append(await seconds_to_echo(*prototype))
    command = [sys.executable, "-m", "opentabs_py", "call", "probe_echo", '{"value": 1}']
    began = time.perf_counter()
    await anyio.run_process(
        [*command, "--plugin", str(PROBE), "--open", url], stderr=subprocess.PIPE
    )
    return {
        "first_result": median(first_results),
        "first_floor": median(first_floors),
        "command": time.perf_counter() - began,
    }


async def seconds_to_echo(*arguments: str) -> float:
    """The time until a new Python process prints the value of an echo; it may exit later."""
    began = time.perf_counter()
    async with await anyio.open_process([sys.executable, *arguments], stderr=None) as process:
        assert process.stdout is not None
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 1000)
        seconds = time.perf_counter() - began
        assert line == b"{'value': 1}"
    return seconds


async def ends() -> dict[str, float]:
    """Stop servers with a browser: by a signal, and over stdio by the end of stdin."""
    command = [sys.executable, "-m", "opentabs_py", "serve", "--port", "0", "--plugin", str(PROBE)]
    took: list[float] = []
    for options in ([], ["--stdio"]):
        async with await anyio.open_process([*command, *options]) as server:
            assert server.stdin is not None
            assert server.stderr is not None
            log = BufferedByteReceiveStream(server.stderr)
            await log.receive_until(b"MCP at ", 1_000_000)
            began = time.perf_counter()
            if options:
                await server.stdin.aclose()
            else:
                server.send_signal(signal.SIGTERM)
            assert await server.wait() == 0
            took.append(time.perf_counter() - began)
    by_signal, by_stdin = took
    return {"end_by_signal": by_signal, "end_by_stdin": by_stdin}


async def kit_runs(chromium: Path) -> dict[str, float]:
    """Run a suite of tests that do almost nothing, each in its own page."""
    with tempfile.TemporaryDirectory() as directory:
        began = time.time()
        ran = await anyio.to_thread.run_sync(run_kit, Path(directory), "bench")
        assert ran.code == 0, ran.output
        first = float((Path(directory) / "first").read_text()) - began

    def took(name: str) -> list[float]:
        return [1000 * case.seconds for each, case in ran.cases.items() if name in each]

    further = took("further")
    return {
        "kit_first": first,
        "kit_further": median(further),
        "kit_replayed": median(took("replayed")),
        "kit_routed": median(took("routed")),
        "page_floor": median(await fresh_page_ms(chromium, len(further))),
    }


async def builds() -> dict[str, float]:
    """Build a new plugin, and build it again after changes, as the command does."""
    with tempfile.TemporaryDirectory() as parent:
        plugin = Path(parent) / "chat"
        scaffold("chat", plugin, language="ts")
        command = [str(Path(sys.executable).with_name("opentabs")), "build", str(plugin)]
        began = time.perf_counter()
        await anyio.run_process(command)
        build = time.perf_counter() - began
        tool = plugin / "src" / "tools" / "hello.ts"
        source = tool.read_text()
        watching = [*command, "--watch", "--json"]
        took: list[float] = []
        async with await anyio.open_process(watching, stderr=None) as process:
            assert process.stdout is not None
            answers = BufferedByteReceiveStream(process.stdout)
            await answers.receive_until(b"\n", 65536)
            for number in range(REBUILDS):
                began = time.perf_counter()
                tool.write_text(source.replace("Greet someone", f"Greet {number}"))
                await answers.receive_until(b"\n", 65536)
                took.append((time.perf_counter() - began) * 1000)
            process.terminate()
    return {"build": build, "rebuild": median(took)}
