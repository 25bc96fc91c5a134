"""What a background server, an already running browser, and many browsers cost."""

import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio
import pytest

from e2e.bench.table import Measurement
from e2e.browser.desktop import ALLOW, Chromium, missing_programs, screen
from e2e.chain import PROBE
from e2e.waiting import PATIENT
from opentabs_py.browser.discovery import PORT_FILE, Attach
from opentabs_py.config.settings import load_settings
from opentabs_py.session.session import OpenTabs

COMMANDS = 6
BROWSERS = 10
CALLS = 200
THINKS = 1.0  # s; Chromium's dialog ignores clicks that are too early or too close together
MEASUREMENTS = {
    "command_running": Measurement(
        "`opentabs call` of a running server, command to end", "s", at_most=0.35
    ),
    "attach": Measurement(
        "attach, to the question and from Allow to first result", "s", needs="Xvfb and xdotool"
    ),
    "echo_browsers": Measurement(f"echo, {BROWSERS} browsers", "ms", beside="echo_one_browser"),
}
OPENTABS = [sys.executable, "-m", "opentabs_py"]


@asynccontextmanager
async def running_server(url: str) -> AsyncGenerator[dict[str, str]]:
    """Start a background server; yield the environment in which commands find it."""
    with tempfile.TemporaryDirectory() as state:
        environment = {**os.environ, "XDG_STATE_HOME": state}
        command = [*OPENTABS, "start", "--port", "0", "--plugin", str(PROBE), "--open", url]
        await anyio.run_process(command, env=environment)
        try:
            yield environment
        finally:
            await anyio.run_process([*OPENTABS, "stop"], env=environment)


async def commands(environment: dict[str, str]) -> dict[str, float]:
    """Call a tool of a running server, with a new command each time."""
    took: list[float] = []
    for _ in range(COMMANDS):
        began = time.perf_counter()
        done = await anyio.run_process(
            [*OPENTABS, "call", "probe_echo", '{"value": 1}'], env=environment
        )
        took.append(time.perf_counter() - began)
        assert json.loads(done.stdout) == {"value": 1}
    return {"command_running": median(took)}


async def attach(url: str) -> dict[str, float]:
    """Attach to a browser on a screen, and answer its dialog there."""
    if missing_programs():
        return {}
    with screen() as display, tempfile.TemporaryDirectory() as directory:
        chromium = Chromium(Path(directory) / "profile", display)
        chromium.allow_debugging()
        chromium.start(url)
        try:
            with anyio.fail_after(PATIENT):
                while not (chromium.directory / PORT_FILE).exists():  # noqa: ASYNC110
                    await anyio.sleep(0.1)
            await anyio.sleep(2)  # until it idles, as a user's browser does
            with _data_directory(Path(directory) / "data"), anyio.fail_after(PATIENT):
                return {"attach": await _seconds_to_attach(chromium)}
        finally:
            await chromium.stop()


async def _seconds_to_attach(chromium: Chromium) -> float:
    """Return the time until the dialog, and the time from its answer to the first result."""
    settings = load_settings(port=0, profile=None, headed=False)
    began = time.perf_counter()
    async with OpenTabs(
        plugins=[PROBE], browser=Attach(user_data_dir=chromium.directory), settings=settings
    ) as tabs:
        [browser] = tabs.internals.browsers
        while "asks" not in browser.bridge.tabs.user_action:  # noqa: ASYNC110 (there is no event for it)
            await anyio.sleep(0.005)
        until_asked = time.perf_counter() - began
        answered = 0.0
        while not tabs.internals.bridge.connected:
            await anyio.sleep(THINKS)
            answered = time.perf_counter()
            await anyio.to_thread.run_sync(chromium.click, ALLOW)
            with anyio.move_on_after(THINKS):
                await tabs.internals.bridge.wait_connected()
        await tabs.internals.bridge.wait_ready("probe")
        await tabs.call("probe_echo", {"value": 1})
        return until_asked + time.perf_counter() - answered


@contextmanager
def _data_directory(directory: Path) -> Generator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_DATA_HOME", str(directory))
        yield


@dataclass(slots=True)
class Fleet:
    """A session with one browser and one with ten, each with a page in every browser."""

    tabs: dict[str, tuple[OpenTabs, int]]

    async def measure(self) -> dict[str, float]:
        """Call the page of the only browser and of the last of ten, alternating."""
        took: defaultdict[str, list[float]] = defaultdict(list)
        for _ in range(CALLS):
            for name, (tabs, tab) in self.tabs.items():
                began = time.perf_counter()
                await tabs.call("probe_echo", {"value": 1, "tabId": tab})
                took[name].append((time.perf_counter() - began) * 1000)
        return {name: median(times) for name, times in took.items()}


@asynccontextmanager
async def fleet(url: str) -> AsyncGenerator[Fleet]:
    """Run eleven browsers."""
    settings = load_settings(port=0, host="127.0.0.1", profile=None, headed=False)
    async with AsyncExitStack() as stack:
        profiles = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tabs: dict[str, tuple[OpenTabs, int]] = {}
        for name, count in (("echo_one_browser", 1), ("echo_browsers", BROWSERS)):
            session = await stack.enter_async_context(
                OpenTabs(
                    plugins=[PROBE],
                    browsers={
                        f"b{number}": profiles / name / str(number) for number in range(count)
                    },
                    settings=settings,
                )
            )
            for browser in session.browsers.values():
                await browser.open(url)
            shown = [await b.bridge.wait_ready("probe") for b in session.internals.browsers]
            tabs[name] = (session, shown[-1].tab_id)
        running = Fleet(tabs)
        await running.measure()
        yield running


async def _main(rounds: int) -> None:
    from e2e.bench.page import serve_site

    async with serve_site() as url:
        async with running_server(url) as environment:
            for _ in range(rounds):
                print(await commands(environment), await attach(url), flush=True)
        async with fleet(url) as browsers:
            for _ in range(rounds):
                print(await browsers.measure(), flush=True)


if __name__ == "__main__":
    anyio.run(_main, 3, backend_options={"use_uvloop": sys.platform != "win32"})
