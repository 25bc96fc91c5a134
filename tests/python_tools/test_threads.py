"""Generators in threads of their own, however they end."""

import threading
from collections.abc import AsyncGenerator, Generator
from typing import Any

import anyio
import pytest

from opentabs_py.python_tools.threads import consume, iterate_in_thread
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


class StoppedError(Exception):
    """Why the consumer stops."""


def stop(_item: object) -> None:
    raise StoppedError


async def test_the_exception_of_a_generator_follows_what_it_has_yielded() -> None:
    def fails() -> Generator[int]:
        yield 1
        raise ValueError("the second is missing")

    items = iterate_in_thread(fails())
    with anyio.fail_after(PATIENT):
        assert await anext(items) == 1
        with pytest.raises(ValueError, match="the second is missing"):
            await anext(items)


async def test_what_a_generator_returns_is_its_last_item() -> None:
    def counts(result: Any) -> Generator[int, None, Any]:
        yield 1
        return result

    assert [item async for item in iterate_in_thread(counts({"total": 1}))] == [1, {"total": 1}]
    assert [item async for item in iterate_in_thread(counts(None))] == [1]


async def test_a_generator_whose_consumer_stops_is_closed_in_its_thread_before_that_goes_on() -> (
    None
):
    threads: list[threading.Thread] = []

    def counts() -> Generator[int]:
        threads.append(threading.current_thread())
        try:
            yield 1
            raise AssertionError("continued")
        finally:
            threads.append(threading.current_thread())

    items = iterate_in_thread(counts())
    assert await anext(items) == 1
    await items.aclose()
    [began, ended] = threads
    assert began is ended
    assert began is not threading.current_thread()


async def test_a_generator_that_runs_when_its_consumer_stops_is_closed_when_it_yields(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opentabs_py.python_tools.threads.CLOSE_WITHIN", PATIENT * 2)
    runs_on, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def waits() -> Generator[int]:
        try:
            yield 1
            runs_on.set()
            go_on.wait(PATIENT)
            yield 2
            raise AssertionError("continued")
        finally:
            closed.set()

    async def consume() -> None:
        async for _ in iterate_in_thread(waits()):
            pass

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            assert await anyio.to_thread.run_sync(runs_on.wait, PATIENT)
            tasks.cancel_scope.cancel()
        assert not closed.is_set()  # the consumer did not wait for it
        go_on.set()
        assert await anyio.to_thread.run_sync(closed.wait, PATIENT)
        await until_all_wait()
    assert caplog.messages == []


class SlowToWake(threading.Semaphore):
    """A semaphore whose waiter, as on a busy machine, does not run when it could.

    Attributes:
        runs: Set when it may run.
    """

    runs = threading.Event()

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Acquire it, and then wait."""
        return super().acquire(blocking, timeout) and self.runs.wait(PATIENT)


async def test_a_consumer_that_stops_before_its_generator_could_run_on_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.python_tools.threads.CLOSE_WITHIN", PATIENT * 2)
    monkeypatch.setattr(threading, "Semaphore", SlowToWake)
    received, closed = anyio.Event(), threading.Event()

    def counts() -> Generator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.set()

    async def consume() -> None:
        async for _ in iterate_in_thread(counts()):
            received.set()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            await received.wait()
            await until_all_wait()
            tasks.cancel_scope.cancel()
        assert not closed.is_set()
        SlowToWake.runs.set()
        assert await anyio.to_thread.run_sync(closed.wait, PATIENT)


async def test_a_generator_that_fails_after_its_consumer_has_stopped_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails() -> Generator[int]:
        try:
            yield 1
        finally:
            raise ValueError("cannot be closed")

    items = iterate_in_thread(fails())
    assert await anext(items) == 1
    await items.aclose()
    assert caplog.messages == ["A generator failed after its consumer stopped"]
    assert "cannot be closed" in caplog.text


async def test_an_async_generator_that_fails_while_it_is_closed_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            raise ValueError("cannot be closed")

    with pytest.raises(StoppedError):
        await consume(fails(), stop)
    assert caplog.messages == ["A generator failed while being closed"]
    assert "cannot be closed" in caplog.text


async def test_an_async_generator_is_closed_although_its_call_is_cancelled() -> None:
    closed: list[str] = []

    async def cleans_up() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await anyio.lowlevel.checkpoint()
            closed.append("all of it")

    def stop_and_cancel(_item: int) -> None:
        scope.cancel()
        raise StoppedError

    with anyio.CancelScope() as scope, pytest.raises(StoppedError):
        await consume(cleans_up(), stop_and_cancel)
    assert closed == ["all of it"]


async def test_an_async_generator_that_does_not_end_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("opentabs_py.python_tools.threads.CLOSE_WITHIN", 0.0)

    async def hangs() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENT), pytest.raises(StoppedError):
        await consume(hangs(), stop)


async def test_an_async_generator_is_closed_within_what_it_has_open_where_it_yields() -> None:
    closed: list[str] = []

    async def yields_in_a_group() -> AsyncGenerator[int]:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep_forever)
                yield 1
        finally:
            closed.append("the group")

    with pytest.raises(StoppedError):
        await consume(yields_in_a_group(), stop)
    assert closed == ["the group"]
    await anyio.lowlevel.checkpoint()  # in a task that still works
