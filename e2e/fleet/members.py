"""A NATS server, workers and endpoints: each in its own process, unless it says otherwise."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Self

import anyio
import nats
import pytest
from anyio.abc import ByteStream, SocketAttribute
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError

from e2e.waiting import PATIENT
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import Settings, load_settings
from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.fleet.worker import FleetWorker
from opentabs_py.session.session import OpenTabs
from opentabs_py.session.worker import run_worker

OPENTABS = [sys.executable, "-m", "opentabs_py"]
TOOLS = Path(__file__).parent / "fleet_tools.py"
# The same, but an endpoint may be silent for as long as tests wait.
PATIENT_CODE = f"""
from opentabs_py.cli import main
from opentabs_py.core.fleet import liveness

liveness.SILENT_FOR = {PATIENT}
main()
"""
PATIENT_OPENTABS = [sys.executable, "-c", PATIENT_CODE]


class Nats:
    """A NATS server that keeps its port when it is restarted.

    Args:
        config: Additional configuration.
        directory: Where that file is.
    """

    def __init__(self, directory: Path, config: str = "") -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self._config = directory / "nats.conf"
        self._config.write_text(f"listen: 127.0.0.1:{self.port}\n{config}")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None
        self._process = subprocess.Popen(
            [program, "-c", str(self._config)], stderr=subprocess.DEVNULL
        )
        while True:
            assert self._process.poll() is None, "nats-server has exited"
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def nats_server(directory: Path, config: str = "") -> Generator[Nats]:
    """Run a NATS server."""
    if shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("there is no nats-server (Debian: apt install nats-server)")
    nats = Nats(directory, config)
    nats.start()
    try:
        yield nats
    finally:
        nats.kill()


class Worker:
    """A worker in its own process.

    Args:
        process: The process.
        log: Its stderr.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Drain it like a process manager, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=PATIENT)


async def until_missed(fleet: "Fleet", worker: Announcement) -> None:
    """Wait until NATS knows that a worker is gone.

    Until it has read the end of the connection, it sends messages that nobody receives.
    """
    client = await nats.connect(fleet.nats.url)
    subject = f"{Subjects(fleet.name).worker(worker.name, worker.instance)}.nothing"
    with anyio.fail_after(PATIENT), suppress(NoRespondersError):
        while True:
            with suppress(NatsTimeoutError):
                await client.request(subject, timeout=0.2)
    await client.close()


class Fleet:
    """Workers of one NATS server.

    Args:
        nats: The server.
        directory: Where logs go, and the file in which the tools write that they ran.
        name: The fleet's name; by default, its own.
    """

    def __init__(self, nats: Nats, directory: Path, name: str | None = None) -> None:
        self.nats = nats
        self.name = name or f"fleet-{secrets.token_hex(4)}"  # unlike those of other tests
        self.options = ["--nats", nats.url, "--fleet", self.name]
        self.directory = directory
        self.runs = directory / "runs"
        self.runs.touch()
        self._workers: list[Worker] = []

    def worker(
        self,
        name: str,
        *options: str,
        nats: str | None = None,
        opentabs: Sequence[str] = OPENTABS,
    ) -> Worker:
        """Start a worker; by default, one that has only Python tools."""
        log = self.directory / f"{name}.log"
        tools = [] if "--plugin" in options else ["--tools", str(TOOLS)]
        where = ["--nats", nats or self.nats.url, "--fleet", self.name]
        command = ["worker", *where, "--name", name, *tools, *options]
        with log.open("ab") as stderr:
            process = subprocess.Popen(
                [*opentabs, *command],
                stderr=stderr,
                env={**os.environ, "RUNS": str(self.runs)},
                cwd=self.directory,
            )
        worker = Worker(process, log)
        self._workers.append(worker)
        return worker

    def count(self, what: str) -> Counter[str]:
        """Return how often each key `began` or was `cancelled`."""
        lines = (line.split() for line in self.runs.read_text().splitlines())
        return Counter(key for verb, key in lines if verb == what)

    async def until(self, what: str, key: str) -> None:
        """Wait until a call with this key has begun or was cancelled."""
        await poll(lambda: self.count(what)[key] > 0)

    def end(self) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.terminate()
        for worker in self._workers:
            try:
                worker.process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                worker.kill()


@contextmanager
def a_fleet(nats: Nats, directory: Path, name: str | None = None) -> Generator[Fleet]:
    """Start workers, and end them all."""
    fleet = Fleet(nats, directory, name)
    try:
        yield fleet
    finally:
        fleet.end()


@asynccontextmanager
async def endpoint(
    fleet: Fleet,
    *,
    workers: int,
    ready: str | None = None,
    nats: str | None = None,
    settings: Settings | None = None,
    tools: Sequence[Any] = (),
    **options: object,
) -> AsyncGenerator[OpenTabs]:
    """Run an endpoint in this process, once enough workers are there.

    Args:
        fleet: The fleet.
        workers: How many workers to wait for.
        ready: A plugin that must be ready in each of them.
        nats: The address of the NATS server, if not that of the fleet.
        settings: The endpoint's settings.
        tools: Python tools of the endpoint itself.
        options: Additional `FleetOptions`.
    """
    joined = FleetOptions(nats or fleet.nats.url, fleet.name, **options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    served = settings or load_settings(port=0)
    async with OpenTabs(nats=joined, tools=tools, settings=served) as tabs:
        await until(tabs, lambda known: len(known) == workers and all(map(_is_ready(ready), known)))
        await poll(lambda: bool(tabs.internals.fleet.catalog.entries))
        yield tabs


async def poll(holds: Callable[[], bool]) -> None:
    """Wait until a condition without an event is true."""
    with anyio.fail_after(PATIENT):
        while not holds():  # noqa: ASYNC110
            await anyio.sleep(0.02)


async def until(tabs: OpenTabs, holds: Callable[[list[Announcement]], bool]) -> None:
    """Wait until a condition is true for the workers."""
    with anyio.fail_after(PATIENT):
        while not holds([*tabs.internals.fleet.directory.usable]):
            await tabs.internals.fleet.changed().wait()


def _is_ready(plugin: str | None) -> Callable[[Announcement], bool]:
    return lambda worker: bool(
        worker.served if plugin is None else worker.total_ready.get(plugin, 0) > 0
    )


class Network:
    """A network between a worker and NATS, which can be cut.

    Args:
        port: Where NATS listens.
        rate: What it carries each way, in bytes per second.

    Attributes:
        open: Whether it carries anything now.
        rate: What it carries each way now, in bytes per second.
        port: Where the worker connects.
    """

    def __init__(self, port: int, rate: float = inf) -> None:
        self._to = port
        self.open = True
        self.rate = rate
        self.port = 0
        self._tasks = anyio.create_task_group()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = self._listener.extra(SocketAttribute.local_port)
        self._tasks.start_soon(self._listener.serve, self._carry)
        return self

    async def __aexit__(self, *args: object) -> None:
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        await self._listener.aclose()

    async def _carry(self, near: ByteStream) -> None:
        async with (
            near,
            await anyio.connect_tcp("127.0.0.1", self._to) as far,
            anyio.create_task_group() as tasks,
        ):

            async def pump(one: ByteStream, other: ByteStream) -> None:
                free_at = anyio.current_time()
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    async for data in one:
                        free_at = max(free_at, anyio.current_time()) + len(data) / self.rate
                        await anyio.sleep_until(free_at)
                        if self.open:
                            await other.send(data)
                tasks.cancel_scope.cancel()

            tasks.start_soon(pump, near, far)
            tasks.start_soon(pump, far, near)


def double(value: int) -> int:
    return 2 * value


def worker_in_this_process(
    fleet: Fleet, look: Callable[[OpenTabs, FleetWorker], Awaitable[None]], **settings: Any
) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return a function that runs a worker with one tool until cancelled; `look` gets it first."""
    return partial(
        run_worker,
        FleetOptions(fleet.nats.url, fleet.name),
        load_settings(port=0, **settings),
        name="one",
        browsers=1,
        max_calls=1,
        on_ready=look,
        tools=[double],
    )
