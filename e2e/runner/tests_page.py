"""`opentabs test --ui` as people use it: the command in a terminal, its page in a browser."""

import re
import subprocess
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import anyio
from playwright.async_api import Browser, Locator, Page, expect

from e2e.live_page import live_page
from e2e.terminals import Terminal, environment_of, terminal

COMMAND = ("opentabs", "test", "--ui", "--no-open")
_ADDRESS = re.compile(r"Tests at (http://127\.0\.0\.1:\d+/\?token=[\w-]+)")


@dataclass
class Shown:
    """The command, and its page."""

    terminal: Terminal
    page: Page

    @property
    def details(self) -> Locator:
        return self.page.get_by_role("complementary", name="The selected test")

    @property
    def summary(self) -> Locator:
        return self.page.locator("#summary")

    def row(self, name: str) -> Locator:
        """The row of a test, by the start of its name and its state."""
        start = re.escape(name).replace("/", r"\/")  # it becomes a JavaScript literal
        return self.page.get_by_role("option", name=re.compile(f"^{start}"))

    async def choose(self, name: str) -> None:
        await self.row(name).first.click()
        await expect(self.details.locator("h2")).to_be_visible()


async def address(shown: Terminal) -> str:
    """Wait until the command prints the address of its page."""
    while (found := _ADDRESS.search(shown.output.replace("\r\n", ""))) is None:
        await anyio.to_thread.run_sync(shown.wait_for, "\n")
    return found[1]


@asynccontextmanager
async def opened(
    browser: Browser, url: str, *, width: int = 1280, height: int = 800, dark: bool = False
) -> AsyncGenerator[Page]:
    """The page of the tests, signed in; its errors fail the test."""
    async with live_page(browser, url, width=width, height=height, dark=dark) as page:
        yield page


@asynccontextmanager
async def shown_tests(
    browser: Browser,
    plugin: Path,
    environment: Mapping[str, str],
    *,
    options: Sequence[str] = (),
    width: int = 1280,
    height: int = 800,
    dark: bool = False,
) -> AsyncGenerator[Shown]:
    """The command in a plugin's directory, and its page."""
    with terminal([*COMMAND, *options], plugin, **environment) as running:
        url = await address(running)
        async with opened(browser, url, width=width, height=height, dark=dark) as page:
            over = Event()
            reader = Thread(target=running.drain, args=[over])
            reader.start()
            try:
                yield Shown(running, page)
            finally:
                over.set()
                reader.join()


@contextmanager
def piped(
    command: Sequence[str], plugin: Path, environment: Mapping[str, str]
) -> "Generator[subprocess.Popen[str]]":
    """A command without a terminal, with its output in a pipe."""
    with subprocess.Popen(
        command,
        cwd=plugin,
        env=environment_of(environment),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
