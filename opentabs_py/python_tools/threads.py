"""Run sync code in threads, so that nothing else waits for it."""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

import anyio

from opentabs_py.calling.loop import call_on_loop

logger = logging.getLogger(__name__)
T = TypeVar("T")

CLOSE_WITHIN = 1.0  # s; how long the end of a call waits for a generator's `finally`


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    value: T | None = None
    error: BaseException | None = None


async def run_in_thread(function: Callable[[], T]) -> T:
    """Call a function in its own thread, with a copy of this context.

    A blocking tool must not wait for other blocking tools, so the number of threads is unlimited.
    On cancellation the thread keeps running and its result is discarded; it does not prevent the
    program from exiting.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Ended[T]] = loop.create_future()

    def settle(ended: _Ended[T]) -> None:
        if not future.done():
            future.set_result(ended)

    def work() -> None:
        # Wrapped, because a future rejects StopIteration, and SystemExit must not reach the loop.
        ended: _Ended[T]
        try:
            ended = _Ended(function())
        except BaseException as error:  # noqa: BLE001
            ended = _Ended(error=error)
        with suppress(RuntimeError):  # the loop is closed
            call_on_loop(loop, settle, ended)

    thread = _start(work)
    try:
        ended = await future
    except asyncio.CancelledError as cancelled:
        raise cancelled.with_traceback(_traceback(thread)) from None
    if ended.error is not None:
        raise ended.error
    return cast(T, ended.value)


async def iterate_in_thread(generator: Generator[Any, Any, Any]) -> AsyncGenerator[Any]:
    """Yield a generator's items, run in one thread, then its return value, if any.

    The generator does not run ahead of the consumer. However this ends, the generator is closed
    in its thread: immediately if it is suspended, otherwise when it next yields, without waiting.
    """
    loop = asyncio.get_running_loop()
    send, receive = anyio.create_memory_object_stream[Any](2)
    go_on = threading.Semaphore(0)
    is_abandoned = has_yielded = False
    error: BaseException | None = None

    def receive_item(item: Any) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            send.send_nowait(item)

    def post(item: Any) -> None:
        nonlocal has_yielded
        has_yielded = True  # before the consumer has the item, with which it may stop
        call_on_loop(loop, receive_item, item)

    def work() -> None:
        nonlocal error
        try:
            error = _drive(generator, post, wait)
            if error is not None and is_abandoned:
                logger.error("A generator failed after its consumer stopped", exc_info=error)
        finally:
            with suppress(RuntimeError):  # the loop is closed
                call_on_loop(loop, send.close)

    def wait() -> bool:
        go_on.acquire()
        return not is_abandoned

    thread = _start(work)
    try:
        async for item in receive:
            yield item
            has_yielded = False  # from now on it runs, even if its thread is slow to wake
            go_on.release()
        if error is not None:
            raise error
    except asyncio.CancelledError as cancelled:
        raise cancelled.with_traceback(_traceback(thread)) from None
    finally:
        is_abandoned = True
        within = CLOSE_WITHIN if has_yielded else 0
        go_on.release()
        with anyio.move_on_after(within, shield=True):
            async for _ in receive:
                pass  # until the thread has closed the generator
        receive.close()


def _drive(
    generator: Generator[Any, Any, Any], post: Callable[[Any], object], wait: Callable[[], bool]
) -> BaseException | None:
    """Run a generator until it ends or its consumer stops; return what it raised."""
    try:
        while True:
            try:
                item = next(generator)
            except StopIteration as end:
                if end.value is not None:
                    post(end.value)
                return None
            post(item)
            if not wait():
                generator.close()
                return None
    except BaseException as error:  # noqa: BLE001
        return error


def _start(work: Callable[[], None]) -> threading.Thread:
    run = copy_context().run
    thread = threading.Thread(target=run, args=(work,), name="opentabs tool", daemon=True)
    thread.start()
    return thread


def _traceback(thread: threading.Thread) -> TracebackType | None:
    """Return where the function in a thread is now, as an exception raised there would."""
    found: TracebackType | None = None
    # The underscore is for what it costs, not for what may change: it is documented.
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    frame = frames.get(thread.ident or 0)
    while frame is not None and frame.f_code.co_filename != __file__:
        line = frame.f_lineno or frame.f_code.co_firstlineno  # it may have none
        found = TracebackType(found, frame, frame.f_lasti, line)
        frame = frame.f_back
    return found


async def consume(items: AsyncGenerator[Any], handle: Callable[[Any], object]) -> None:
    """Call a function with each item of an async generator, and then close the generator.

    Closing it takes at most CLOSE_WITHIN seconds, and is done even if this is cancelled.
    """
    failure: BaseException | None = None
    # Entered before those that the generator may be in while it yields: scopes are nested.
    with anyio.CancelScope() as scope:
        try:
            async for item in items:
                handle(item)
        except BaseException as error:  # noqa: BLE001
            failure = error
        scope.shield, scope.deadline = True, anyio.current_time() + CLOSE_WITHIN
        try:
            await items.aclose()
        except (Exception, BaseExceptionGroup):  # task groups wrap the GeneratorExit
            logger.exception("A generator failed while being closed")
    if failure is not None:
        raise failure
