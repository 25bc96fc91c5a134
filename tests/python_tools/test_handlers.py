"""The queue of each progress handler."""

import asyncio
from typing import Any

import anyio
import pytest

from opentabs_py.python_tools import handlers as progress_handlers
from opentabs_py.python_tools.handlers import ProgressHandlers, ToolEvent
from opentabs_py.python_tools.progress import CallReport
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


def events(count: int) -> list[ToolEvent]:
    return [ToolEvent("t", "c", n, CallReport("callback", n)) for n in range(count)]


async def test_a_handler_that_is_too_slow_misses_the_oldest_events_and_is_named_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress_handlers, "WAITING", 2)
    handlers, seen, go_on = ProgressHandlers(), list[int](), anyio.Event()

    @handlers
    async def slow(_tool: str, _call: str, data: Any) -> None:
        seen.append(data)
        await go_on.wait()

    first, *rest = events(6)
    handlers.notify(first)
    await until_all_wait()
    for event in rest:
        handlers.notify(event)
    go_on.set()
    await handlers.flush()
    assert seen == [0, 4, 5]
    assert caplog.messages == [
        f"The progress handler {slow.__qualname__!r} is too slow: dropping events"
    ]


async def test_a_handler_that_hangs_is_cancelled_and_receives_the_next_event(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress_handlers, "HANG", 0.0)
    handlers, seen = ProgressHandlers(), list[int]()

    @handlers
    async def hangs(_tool: str, _call: str, data: Any) -> None:
        seen.append(data)
        await anyio.sleep_forever()

    for event in events(2):
        handlers.notify(event)
    await handlers.flush()
    assert seen == [0, 1]
    assert (
        caplog.messages
        == [f"The progress handler {hangs.__qualname__!r} was cancelled after 0 s"] * 2
    )


async def test_closing_cancels_a_handler_and_discards_what_it_has_not_received(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_handlers, "HANG", PATIENT * 2)
    handlers, seen, is_cancelled = ProgressHandlers(), list[int](), anyio.Event()

    @handlers
    async def hangs(_tool: str, _call: str, data: Any) -> None:
        seen.append(data)
        try:
            await anyio.sleep_forever()
        finally:
            is_cancelled.set()

    first, second, third = events(3)
    handlers.notify(first)
    handlers.notify(second)
    await until_all_wait()
    handlers.close()
    with anyio.fail_after(PATIENT):
        await is_cancelled.wait()
    await until_all_wait()
    handlers.notify(third)
    await until_all_wait()
    handlers.close()
    assert seen == [0, 2]


@pytest.mark.parametrize("kind", [LookupError, SystemExit, asyncio.CancelledError])
async def test_a_handler_that_raises_receives_the_next_event(
    kind: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    handlers, seen = ProgressHandlers(), list[int]()

    @handlers
    def fails(_tool: str, _call: str, data: Any) -> None:
        seen.append(data)
        raise kind

    for event in events(3):
        handlers.notify(event)
    await handlers.flush()
    assert seen == [0, 1, 2]
    assert caplog.messages == [f"The progress handler {fails.__qualname__!r} failed"]


async def test_a_builtin_without_a_signature_is_called_with_what_every_handler_receives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handlers = ProgressHandlers()
    handlers(zip)  # which fails if it is passed anything by name
    handlers.notify(ToolEvent("t", "c", 0, CallReport("callback", "iterable")))
    await handlers.flush()
    assert caplog.messages == []


async def test_what_every_handler_receives_may_have_any_names() -> None:
    handlers, seen = ProgressHandlers(), list[Any]()

    @handlers
    def misleading(seq: Any, message: Any, total: Any, /, kind: str, *progress: Any) -> None:
        seen.append((seq, message, total, kind, progress))

    @handlers
    def by_name(seq: Any, message: Any, total: Any) -> None:
        seen.append((seq, message, total))

    handlers.notify(ToolEvent("t", "c", 7, CallReport("callback", "data", "text", 1, 2)))
    await handlers.flush()
    assert seen == [("t", "c", "data", "callback", ()), ("t", "c", "data")]
