"""Simulated browsers for the bench of a fleet: workers without Chromium, many in one process.

Each is a real `FleetWorker` with its own connection; only the session behind it is simulated. Run
as `python -m e2e.bench.fleet_workers NATS FLEET FIRST COUNT OWNER`.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio
from nats.aio.client import Client
from nats.aio.msg import Msg

from opentabs_py.calling.call import THIS_PROCESS, CallOrigin, Cancellation, ToolCall
from opentabs_py.calling.listing import Listing
from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.tool import Tool
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import nats_link
from opentabs_py.fleet.worker import FleetWorker

UVLOOP = {"use_uvloop": sys.platform != "win32"}
CONNECTING = 50  # at once
MOST = 16 * 1024 * 1024
MAX_CALLS = 8


class SimulatedTool:
    """A tool as its worker describes it.

    Args:
        name: Its name.
        owner: The plugin or module that it belongs to.
    """

    limits: Limits | None = None

    def __init__(self, name: str, owner: str) -> None:
        self.listing = Listing(name, owner, name, f"{name}, simulated.", {"type": "object"})

    def prepare(self, call: ToolCall) -> Any:
        """Call `SimulatedSession.call` instead."""
        raise NotImplementedError


class SimulatedSession:
    """A session and its tools: echo, report, and one that never returns.

    Args:
        owner: What the tools belong to; their names begin with it.
    """

    browsers: Sequence[str] = ("0",)
    restarts = 0

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self.tools: Sequence[Tool] = [
            SimulatedTool(f"{owner}_{name}", owner) for name in ("echo", "report", "hold")
        ]

    @property
    def registry(self) -> "SimulatedSession":
        return self

    @property
    def caller(self) -> "SimulatedSession":
        return self

    def ready(self) -> Mapping[str, int]:
        return {self._owner: 1}

    def patterns(self, owner: str) -> Sequence[str]:
        return [f"https://{owner}.example/*"]

    def changed(self) -> anyio.Event:
        return anyio.Event()

    def has_tabs(self, client: str) -> bool:  # noqa: ARG002
        return False

    def handle_client_gone(self, client: str) -> None: ...

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        return lambda: None

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        /,
        *,
        limits: Limits | None = None,  # noqa: ARG002
        observers: Sequence[CallObserver] = (),
        origin: CallOrigin = THIS_PROCESS,  # noqa: ARG002
        cancellation: Cancellation | None = None,  # noqa: ARG002
        on_record: Callable[[CallRecord], None] | None = None,  # noqa: ARG002
        traced: bool = True,  # noqa: ARG002
    ) -> Any:
        for observer in observers:
            observer.on_sent()
        if tool == f"{self._owner}_hold":
            await anyio.sleep_forever()
        for number in range(arguments.get("reports", 0)):
            for observer in observers:
                observer.on_reports([ProgressReport(number, progress=number)])
        return dict(arguments)


async def work(nats: str, fleet: str, first: int, count: int, owner: str) -> None:
    """Run workers until the process is killed.

    Args:
        nats: The address of the NATS server.
        fleet: The name of the fleet.
        first: The number of the first worker's browser.
        count: How many.
        owner: What their tools belong to.
    """
    options = FleetOptions(nats, fleet)
    connecting = anyio.Semaphore(CONNECTING)
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        await answer_requests(nats, owner, stack)

        async def run_worker(number: int) -> None:
            async with connecting:
                link = await stack.enter_async_context(nats_link(options))
            identity = Identity(f"{owner}-{number}", number, {}, MAX_CALLS)
            await FleetWorker(link, identity, SimulatedSession(owner), longest_message=MOST).run()

        for number in range(first, first + count):
            tasks.start_soon(run_worker, number)


async def answer_requests(nats: str, subject: str, stack: AsyncExitStack) -> None:
    """Answer plain NATS requests, for the floor."""
    client: Any = Client()
    await client.connect(nats)
    stack.push_async_callback(client.close)

    async def answer(message: Msg) -> None:
        await client.publish(message.reply, message.data)

    await client.subscribe(subject, cb=answer)


if __name__ == "__main__":
    nats_, fleet_, first_, count_, owner_ = sys.argv[1:]
    anyio.run(work, nats_, fleet_, int(first_), int(count_), owner_, backend_options=UVLOOP)
