"""A call made by a test, in its thread."""

import asyncio
from concurrent.futures import Future
from typing import Any, cast

from opentabs_py.calling.running import RunningCall
from opentabs_py.testing.call import Call
from opentabs_py.testing.thread import ServerThread


class Caller:
    """Returns a value at once."""

    async def call(self, name: str, *_: Any, **_options: Any) -> str:
        return f"value of {name}"


class EndedThread:
    """A server's thread in which everything has ended; it keeps how long it slept."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def start(self, _function: Any) -> "Future[None]":
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def wait(self, future: "Future[Any]", _within: float) -> bool:
        return future.done()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


async def ended() -> RunningCall:
    running = RunningCall("chat_read", {})
    await running.run(Caller(), None)
    return running


def test_waiting_for_a_call_that_has_ended_does_not_sleep() -> None:
    running = asyncio.run(ended())
    thread = EndedThread()
    looks: list[str] = []
    call = Call(running, cast(ServerThread, thread), lambda: looks.append("look"))

    call.wait_up_to(5)

    assert (thread.slept, looks) == ([], ["look"])
    assert call.value == "value of chat_read"
