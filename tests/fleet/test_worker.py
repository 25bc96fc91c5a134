"""A worker and an endpoint that are connected within this process."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, cast

import anyio
import pytest

from opentabs_py.calling.listeners import Listeners
from opentabs_py.calling.tool import Tool
from opentabs_py.core.fleet.channel import PIECE
from opentabs_py.core.fleet.messages import CallAsk, Failed, ToEndpoint, ToWorker
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.core.protocol import Model
from opentabs_py.errors import ChainError
from opentabs_py.fleet.asks import Asks
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.session import Session
from opentabs_py.fleet.worker import FleetWorker
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

MOST = 2 * PIECE  # bytes


class Strange(Model):
    """A request that workers do not know."""

    type: Literal["strange"] = "strange"


class Wire:
    """A connection that both sides share, and that delivers everything in order."""

    version = "1"
    subjects = Subjects("test")
    connected = True

    def __init__(self) -> None:
        self.relinked: Listeners[[]] = Listeners("reconnects")
        self._handlers: dict[str, Callable[[Received], None]] = {}

    async def subscribe(self, subject: str, handle: Callable[[Received], None]) -> None:
        self._handlers[subject.removesuffix(">")] = handle

    def publish(self, subject: str, data: bytes = b"", reply: str = "") -> None:
        for start, handle in self._handlers.items():
            if subject.startswith(start):
                message = Received(subject, data, absent=False, reply=reply)
                asyncio.get_running_loop().call_soon(handle, message)

    async def flush(self) -> None: ...


class FakeSession:
    """A session without tools, in which each call runs until it is cancelled."""

    tools: Sequence[Tool] = ()
    browsers: Sequence[str] = ()
    restarts = 0

    def __init__(self) -> None:
        self.caller = self
        self.called = anyio.Event()
        self.cancelled = anyio.Event()

    def subscribe(self, _listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def ready(self) -> Mapping[str, int]:
        return {}

    def changed(self) -> anyio.Event:
        return anyio.Event()

    async def call(self, *_: Any, **__: Any) -> None:
        self.called.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled.set()


class Pair:
    """A worker named w, and an endpoint that asks it."""

    def __init__(self) -> None:
        link = cast("NatsLink", Wire())
        self.identity = Identity("w", "1", 1)
        self.session = FakeSession()
        session = cast("Session", self.session)
        self.worker = FleetWorker(link, self.identity, session, most=MOST)
        self.asks = Asks(link, "e" * 16, most=MOST, on_lost=lambda _: None)

    async def ask(self, message: Model) -> ToEndpoint:
        announced = self.identity.announce("serving", [])
        with anyio.fail_after(PATIENT):
            return await self.asks.ask(announced, cast("ToWorker", message))


@asynccontextmanager
async def a_pair() -> AsyncGenerator[Pair]:
    pair = Pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pair.worker.run)
        await pair.asks.start()
        await until_all_wait()
        yield pair
        pair.worker.drain()  # which ends it once it has forgotten all calls


def a_call(arguments: dict[str, Any]) -> CallAsk:
    return CallAsk(tool="chat_send", arguments=arguments, idle=1, ceiling=1)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (Strange(), "Input tag 'strange' found using 'type' does not match"),
        (a_call({"text": "x" * (MOST + PIECE)}), "a message is longer than the 131,072 bytes"),
        (a_call({"text": "x" * 10 * MOST}), "a message is longer than the 131,072 bytes"),
    ],
    ids=["of another version", "too long", "far too long"],
)
async def test_a_request_that_a_worker_cannot_read_is_refused_and_does_not_run(
    request_: Model, why: str
) -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair:
            answer = await pair.ask(request_)
            assert isinstance(answer, Failed)
            assert (answer.kind, answer.code) == ("chain", "FLEET_INVALID_REQUEST")
            assert answer.message.startswith(f"The worker w cannot read the request ({why}")
            assert "the tool did not run" in answer.message
            assert not pair.session.called.is_set()


async def test_a_call_of_which_a_later_message_cannot_be_read_is_cancelled() -> None:
    with anyio.fail_after(PATIENT):
        async with a_pair() as pair, anyio.create_task_group() as tasks:

            async def call() -> None:
                with pytest.raises(ChainError) as caught:
                    await pair.ask(a_call({}))
                assert caught.value.detail.code == "WORKER_LOST"

            tasks.start_soon(call)
            await pair.session.called.wait()
            [ask] = pair.asks._open.values()
            ask.channel.send(b"nonsense")
            await pair.session.cancelled.wait()
