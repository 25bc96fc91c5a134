"""A running call: what is known about it while it runs, and how it ends."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import pytest

from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.running import CallLog, RunningCall, current_call, keep_record, keep_start
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ErrorDetail, ToolFailedError
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

ERROR = ToolFailedError(ErrorDetail("NOT_FOUND", "There is none."))
LOG = LogEntry(level="info", message="read a page", time=1_500)


class FakeCaller:
    """A caller whose call is sent, reports, logs and ends on request."""

    def __init__(self, *, sent: bool = True) -> None:
        self.calls: list[tuple[str, Mapping[str, Any], Limits | None]] = []
        self.seen: list[RunningCall | None] = []
        self.result: Any = None
        self.error: Exception | None = None
        self._sent = sent
        self._end = anyio.Event()

    def end(self, result: Any = None, error: Exception | None = None) -> None:
        self.result, self.error = result, error
        self._end.set()

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
    ) -> Any:
        [observer] = observers
        self.calls.append((name, arguments, limits))
        self.seen.append(current_call.get(None))
        if self._sent:
            observer.on_sent()
            observer.on_reports([ProgressReport(0, 1)])
            observer.on_log([LOG])
        await self._end.wait()
        if self.error is not None:
            raise self.error
        return self.result


async def test_a_running_call_shows_what_came_of_it_so_far() -> None:
    caller, call = FakeCaller(), RunningCall("chat_read", {"n": 1})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, Limits(idle=2))
        with anyio.fail_after(PATIENT):
            await call.wait_sent()

            assert not call.ended
            assert [report.progress for report in call.progress] == [1]
            assert call.logs == [CallLog("info", "read a page", 1.5)]
            assert repr(call) == "<RunningCall chat_read running, 1 report>"
            with pytest.raises(RuntimeError, match="has not ended yet"):
                _ = call.value

            caller.end({"ok": True})
            assert await call.result() == {"ok": True}
    assert call.ended
    assert repr(call) == "<RunningCall chat_read ended, 1 report>"
    assert (call.error, call.cancelled) == (None, False)
    assert caller.calls == [("chat_read", {"n": 1}, Limits(idle=2))]


async def test_an_observer_inside_the_call_s_task_knows_which_it_is() -> None:
    caller, call = FakeCaller(), RunningCall("chat_read", {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, None)
        caller.end()

    assert caller.seen == [call]
    assert current_call.get(None) is None


def a_record(name: str) -> CallRecord:
    return CallRecord(f"id of {name}", name, 0.0, 1.0, "succeeded", Limits())


class NestingCaller:
    """Makes calls that call another tool, and notifies the observers of both, as a registry."""

    def __init__(self) -> None:
        self.so_far: list[CallRecord | None] = []

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        limits: Limits | None = None,
        observers: Sequence[CallObserver] = (),
    ) -> None:
        is_inner = name == "inner"
        keep_start(lambda: a_record(name))
        if not is_inner:
            await self.call("inner", arguments, limits=limits, observers=observers)
        call = current_call.get()
        self.so_far.append(call.record_so_far())
        keep_record(a_record(name))


async def test_a_call_s_record_is_its_own_even_if_its_tool_calls_another() -> None:
    caller, call = NestingCaller(), RunningCall("outer", {})

    async def run_in_its_own_task() -> None:
        await call.run(caller, None)
        assert call.record == a_record("outer")
        keep_record(a_record("later"))  # of a task that the tool has left running

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_in_its_own_task)
    assert caller.so_far == [a_record("outer")] * 2
    assert call.record_so_far() == a_record("outer")


@pytest.mark.parametrize("error", [ERROR, ValueError("a bug")])
async def test_an_error_is_raised_where_the_call_is_waited_for(error: Exception) -> None:
    caller, call = FakeCaller(), RunningCall("chat_read", {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, None)
        caller.end(error=error)
        with anyio.fail_after(PATIENT), pytest.raises(type(error)):
            await call.result()

    assert call.error is error
    assert not call.cancelled


async def test_a_call_that_is_never_sent_is_not_waited_for_longer_than_it_lasts() -> None:
    caller, call = FakeCaller(sent=False), RunningCall("chat_read", {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, None)
        caller.end(error=ERROR)
        with anyio.fail_after(PATIENT):
            await call.wait_sent()

    assert call.ended


async def test_a_cancelled_call_has_ended_and_has_no_value() -> None:
    caller, call = FakeCaller(), RunningCall("chat_read", {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, None)
        await call.wait_sent()
        call.cancel()
        with anyio.fail_after(PATIENT):
            await call.wait()

    assert call.cancelled
    with pytest.raises(RuntimeError, match="was cancelled"):
        _ = call.value


async def test_a_call_ends_with_the_session_that_made_it() -> None:
    caller, call = FakeCaller(), RunningCall("chat_read", {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, None)
        await call.wait_sent()
        tasks.cancel_scope.cancel()

    assert call.ended
    assert call.cancelled


async def test_cancelling_a_call_that_has_ended_changes_nothing() -> None:
    caller, call = FakeCaller(), RunningCall("chat_read", {})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, caller, None)
        caller.end(7)
    call.cancel()

    assert (call.value, call.cancelled) == (7, False)
