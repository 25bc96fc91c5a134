"""The floor of the bench: a bare prototype of hops 2 to 5, with none of our guarantees.

A service worker, a content script and a page script forward text, over a WebSocket of the same
uvicorn. A tool's value is serialized in the page and parsed here. There is one tab, a page can read
and forge everything, nothing is checked, and what a hop loses is lost. Reports of one job of the
page are sent in batches of a thousand, the fastest simple way that keeps their order.

Run as a program, it is the floor of a cold start, so it imports nothing from `opentabs_py`: `python
-m e2e.bench.floor.prototype CHROMIUM URL` prints the value of one echo.
"""

import asyncio
import json
import shutil
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from playwright.async_api import Page, async_playwright

EXTENSION = Path(__file__).parent / "extension"
KEEPALIVE = 20  # s; Chrome stops a silent service worker at 30
READY_WITHIN = 10  # s; it takes a few ms
WARM_UP = 100  # echoes

Take = Callable[[list[dict[str, Any]]], None]


@dataclass(slots=True)
class Link:
    """The server's end: pending calls by id, and an ASGI application."""

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    last_id: int = 0
    calls: dict[int, tuple[asyncio.Future[Any], Take | None]] = field(default_factory=dict)
    send: Any = None

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        self.send = send
        self.ready.set()
        pieces: list[str] = []
        while (event := await receive())["type"] == "websocket.receive":
            pieces.append(event["text"][1:])
            if event["text"][0] == ".":
                self.take(json.loads("".join(pieces)))
                pieces.clear()
        for future, _ in self.calls.values():
            future.set_exception(ConnectionError("the floor's browser went away"))

    def take(self, message: dict[str, Any]) -> None:
        future, take = self.calls[message["id"]]
        if "value" in message:
            future.set_result(message["value"])
        elif take is not None:
            take(message["reports"])

    async def call(self, tool: str, take: Take | None = None, **params: Any) -> Any:
        self.last_id += 1
        call_id = self.last_id
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.calls[call_id] = (future, take)
        frame = json.dumps({"id": call_id, "tool": tool, "params": params})
        await self.send({"type": "websocket.send", "text": frame})
        value = await future
        del self.calls[call_id]
        return value


@dataclass(slots=True)
class Floor:
    """The prototype, warm, with the same workloads that the bench runs on ours."""

    link: Link
    page: Page

    async def echo(self) -> float:
        """Return how long an echo takes, in ms."""
        began = time.perf_counter()
        await self.link.call("echo", value=1)
        return (time.perf_counter() - began) * 1000

    async def many_at_once(self, at_once: int, calls_each: int) -> float:
        """Return the calls per second."""

        async def caller() -> None:
            for _ in range(calls_each):
                await self.echo()

        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(caller())
        return at_once * calls_each / (time.perf_counter() - began)

    async def flood(self, count: int) -> float:
        """Return the reports per second, from the call's start to the last report's arrival."""
        taken: list[dict[str, Any]] = []
        last_came = 0.0

        def take(reports: list[dict[str, Any]]) -> None:
            nonlocal last_came
            last_came = time.perf_counter()
            taken.extend(reports)

        began = time.perf_counter()
        await self.link.call("flood", take, count=count)
        assert [report["progress"] for report in taken] == list(range(1, count + 1))
        return count / (last_came - began)

    async def lone_reports(self, count: int, gap: int, origin: float) -> list[float]:
        """Return how long each report took, in ms; the page's clock started at `origin`."""
        took: list[float] = []

        def take(reports: list[dict[str, Any]]) -> None:
            now = time.time() * 1000
            took.extend(now - origin - float(report["message"]) for report in reports)

        await self.link.call("clock", take, count=count, gap=gap)
        assert len(took) == count
        return took

    async def big(self, size: int) -> float:
        """Return the MiB per second of a text of `size` characters."""
        began = time.perf_counter()
        value = await self.link.call("big", size=size)
        seconds = time.perf_counter() - began
        assert len(value["text"]) == size
        return size / 2**20 / seconds


@asynccontextmanager
async def open_floor(chromium: Path, url: str) -> AsyncGenerator[Floor]:
    """A browser with the prototype, whose only page is connected."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        link = Link()
        port = await stack.enter_async_context(serve(link))
        extension = directory / "extension"
        shutil.copytree(EXTENSION, extension)
        (extension / "config.json").write_text(json.dumps({"port": port}))
        playwright = await stack.enter_async_context(async_playwright())
        context = await playwright.chromium.launch_persistent_context(
            directory / "profile",
            executable_path=chromium,
            headless=True,
            args=[f"--load-extension={extension}", f"--disable-extensions-except={extension}"],
        )
        stack.push_async_callback(context.close)
        page = context.pages[0]
        await page.goto(url)
        async with asyncio.timeout(READY_WITHIN):
            await link.ready.wait()
        yield Floor(link, page)


@asynccontextmanager
async def warm_floor(chromium: Path, url: str, flood: int) -> AsyncGenerator[Floor]:
    """The same, warmed up by calls of each kind, and kept alive."""
    async with open_floor(chromium, url) as floor:
        for _ in range(WARM_UP):
            await floor.echo()
        await floor.flood(flood)

        async def keep_alive() -> None:
            while True:
                await asyncio.sleep(KEEPALIVE)
                await floor.echo()

        keeping = asyncio.create_task(keep_alive())
        try:
            yield floor
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping


async def fresh_page_ms(chromium: Path, count: int) -> list[float]:
    """Return how long pytest-playwright takes per test for a context and a page, in ms."""
    took = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium)
        for _ in range(count):
            began = time.perf_counter()
            context = await browser.new_context()
            await context.new_page()
            await context.close()
            took.append((time.perf_counter() - began) * 1000)
        await browser.close()
    return took


@asynccontextmanager
async def serve(app: Any) -> AsyncGenerator[int]:
    """Serve on a free port, configured like our own server, and return the port."""
    # Nagle's algorithm is turned off only if the protocol is named.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listener])
    try:
        yield listener.getsockname()[1]
    finally:
        await server.shutdown([listener])


async def main(chromium: str, url: str) -> None:
    async with open_floor(Path(chromium), url) as floor:
        print(await floor.link.call("echo", value=1), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
