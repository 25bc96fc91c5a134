"""Callbacks that threads schedule know which event loop runs, also where sniffio is installed."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import Context, ContextVar

import anyio
import pytest

from opentabs_py.calling.loop import call_on_loop, loop_context


def from_thread(tell: Callable[[], None]) -> None:
    threading.Thread(target=call_on_loop, args=(asyncio.get_running_loop(), tell)).start()


def from_task(tell: Callable[[], None]) -> None:
    async def work() -> None:
        asyncio.get_running_loop().call_soon(tell)

    asyncio.get_running_loop().create_task(work(), context=loop_context())


@pytest.mark.parametrize("schedule", [from_thread, from_task])
def test_anyio_works_in_a_callback(schedule: Callable[[Callable[[], None]], None]) -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[float] = loop.create_future()

        def tell() -> None:
            try:
                told.set_result(anyio.current_time())
            except Exception as error:  # noqa: BLE001
                told.set_exception(error)

        schedule(tell)
        return await told, loop.time()

    # AnyIO's plugin for pytest may have told this context which event loop runs.
    told, now = Context().run(asyncio.run, main())

    assert told <= now


def test_the_context_is_otherwise_that_of_the_caller() -> None:
    color: ContextVar[str] = ContextVar("color")
    color.set("red")

    assert loop_context()[color] == "red"
