"""A tool's `Progress` outside a running call, and in the wrong thread."""

import gc
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any

import anyio
import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.calling.observer import ProgressObserver
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.python_tools.declare import Declaration
from opentabs_py.python_tools.progress import CallReport, Progress
from opentabs_py.python_tools.run import ToolHost, ToolRun
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


class Caller:
    """Its calls all succeed, or never end; a cancelled one may fail."""

    def __init__(self, *, hangs: bool = False, fails: bool = False) -> None:
        self.called = anyio.Event()
        self._hangs = hangs
        self._fails = fails

    async def call(self, name: str, _arguments: Mapping[str, Any], /, **_: Any) -> Any:
        self.called.set()
        try:
            await (anyio.sleep_forever() if self._hangs else anyio.lowlevel.checkpoint())
        except anyio.get_cancelled_exc_class():
            if self._fails:
                raise ValueError from None
            raise
        return f"{name} was called"


def a_run(reports: list[ProgressReport] | None = None) -> ToolRun:
    host = ToolHost(AlarmClock(), caller=Caller())
    observers = () if reports is None else (ProgressObserver(reports.append),)
    return ToolRun(host, "export", ToolCall({}, Limits(), observers=observers), Declaration())


async def test_a_stream_that_a_thread_opens_once_its_call_has_timed_out_ends_at_once() -> None:
    run = a_run()
    run.end(has_value=False)
    assert run.open_stream("updates", Limits()).ended == "the call that opened it returned no value"


async def test_a_progress_made_by_hand_discards_reports_and_calls_no_tool() -> None:
    progress = Progress()
    progress.report("half", progress=1, total=2)
    progress.heartbeat()
    assert (progress.cancelled, progress.call_id) == (False, "")
    with pytest.raises(RuntimeError, match="belongs to no call"):
        await progress.call("other")
    with pytest.raises(RuntimeError, match="belongs to no call"):
        progress.call_from_thread("other")


async def test_a_tool_calls_others_only_while_its_own_call_runs() -> None:
    run = a_run()
    progress = Progress(run)
    assert await progress.call("other") == "other was called"
    with anyio.fail_after(PATIENT):
        assert await anyio.to_thread.run_sync(progress.call_from_thread, "other") == (
            "other was called"
        )
    run.end(has_value=True)
    assert not progress.cancelled
    with pytest.raises(RuntimeError, match="of export has ended, so it cannot call other"):
        await progress.call("other")
    with pytest.raises(RuntimeError, match="of export has ended, so it cannot call other"):
        await anyio.to_thread.run_sync(progress.call_from_thread, "other")


async def test_a_tool_on_the_event_loop_cannot_block_it_with_a_call() -> None:
    run = a_run()
    with pytest.raises(RuntimeError, match=r"await progress\.call"):
        Progress(run).call_from_thread("other")
    run.end(has_value=True)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_call_from_a_thread_ends_with_the_call_that_makes_it(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caller, ended = Caller(hangs=True, fails=fails), anyio.Event()
    run = a_run()
    run.host.caller = caller

    async def call() -> None:
        with pytest.raises(CancelledError):
            await anyio.to_thread.run_sync(Progress(run).call_from_thread, "other")
        ended.set()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await caller.called.wait()
            run.end(has_value=False)
            await ended.wait()
        await until_all_wait()
    gc.collect()  # which would make asyncio complain of an exception that nobody retrieved
    assert not caplog.records


@pytest.mark.parametrize("number", [float("inf"), float("nan"), True, "1", 10**400])
async def test_what_is_not_a_number_that_mcp_can_send_is_left_out_of_a_report(number: Any) -> None:
    reports: list[ProgressReport] = []
    run = a_run(reports)
    Progress(run).report("half", progress=number, total=number)
    run.flush()
    run.end(has_value=True)
    assert reports == [ProgressReport(0, None, None, "half")]


async def test_reports_after_the_end_of_a_call_are_ignored() -> None:
    reports: list[ProgressReport] = []
    run = a_run(reports)
    run.end(has_value=True)
    run.record(CallReport("report", message="late"))
    run.flush()
    assert reports == []


async def test_reports_that_come_faster_than_they_are_handled_are_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("opentabs_py.python_tools.run.WAITING", 2)
    reports: list[ProgressReport] = []
    run = a_run(reports)
    progress = Progress(run)

    def report() -> None:
        for number in range(5):
            progress.report(str(number))

    thread = threading.Thread(target=report)
    thread.start()
    thread.join(PATIENT)  # in which the event loop handles nothing
    run.flush()
    run.end(has_value=True)
    assert [each.message for each in reports] == ["3", "4"]
    assert caplog.messages == ["export reported too fast: dropped 3 reports"]
