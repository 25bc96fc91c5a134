"""`expect` for calls of async tests; test_verdicts.py tests the verdicts."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from playwright._impl import _assertions

from opentabs_py.calling.observer import CallObserver
from opentabs_py.calling.running import RunningCall
from opentabs_py.core.progress import ProgressReport
from opentabs_py.testing import expect
from opentabs_py.testing.expectations.expectations import CallExpectations, PluginExpectations

LONG = 30.0  # s; the bound of a wait that ends much sooner


class Tool:
    """A caller with one tool, which reports once and ends on request."""

    def __init__(self) -> None:
        self.reported = anyio.Event()
        self.end = anyio.Event()

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        observers: Sequence[CallObserver] = (),
        **_: Any,
    ) -> Any:
        for observer in observers:
            observer.on_reports([ProgressReport(0, 1)])
        self.reported.set()
        await self.end.wait()
        return {"name": name, **arguments}


@asynccontextmanager
async def a_running_call() -> AsyncGenerator[tuple[RunningCall, Tool]]:
    tool, call = Tool(), RunningCall("chat_read", {"n": 1})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call.run, tool, None)
        await tool.reported.wait()
        yield call, tool
        tasks.cancel_scope.cancel()


def take_soft_errors() -> list[str]:
    """Remove the failures with which pytest-playwright would fail this test."""
    collected = _assertions._soft_errors
    assert collected is not None
    errors = [str(error) for error in collected]
    collected.clear()
    return errors


@pytest.mark.parametrize("kind", [CallExpectations, PluginExpectations])
def test_each_expectation_has_its_opposite(kind: type) -> None:
    names = {name for name in dir(kind) if name.startswith("to_")}

    assert len(names) >= 2
    assert {name for name in dir(kind) if name.startswith("not_to_")} == {
        f"not_{name}" for name in names
    }


@pytest.mark.anyio
async def test_an_async_test_awaits_what_is_still_to_come() -> None:
    async with a_running_call() as (call, tool):
        await expect(call).to_progress(min=1, within=LONG)
        assert not call.ended
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(expect(call).to_return, {"n": 1})
            tasks.start_soon(expect(call).not_to_return, {"n": 2})
            tool.end.set()

        await expect(call).to_succeed()
        await expect(call).not_to_fail()


@pytest.mark.anyio
async def test_while_an_expectation_is_awaited_other_tasks_continue() -> None:
    async with a_running_call() as (call, tool), anyio.create_task_group() as tasks:

        async def end_it() -> None:
            tool.end.set()

        tasks.start_soon(end_it)
        await expect(call).to_succeed(within=LONG)


@pytest.mark.anyio
async def test_a_call_is_running_until_it_is_not() -> None:
    async with a_running_call() as (call, tool), anyio.create_task_group() as tasks:
        await expect(call).to_be_running()
        tasks.start_soon(expect(call).not_to_be_running)
        await anyio.lowlevel.checkpoint()
        tool.end.set()
        await expect(call).to_succeed(within=LONG)

        with pytest.raises(AssertionError, match="expected to be running"):
            await expect(call).to_be_running(within=LONG)


@pytest.mark.anyio
async def test_a_failed_expectation_includes_the_tests_own_message() -> None:
    async with a_running_call() as (call, tool):
        with pytest.raises(AssertionError) as while_it_runs:
            await expect(call, "the history").to_succeed(within=0)
        tool.end.set()
        with pytest.raises(AssertionError) as at_its_end:
            await expect(call).not_to_return({"n": 1})

    assert str(while_it_runs.value) == (
        "the history\nchat_read: expected to succeed, within 0 s\n"
        "got: still running, 1 progress report"
    )
    assert str(at_its_end.value) == (
        'chat_read: expected not to return {"n": 1}, within 5 s\n'
        'got: {"name": "chat_read", "n": 1}\n'
        'the call: succeeded, 1 progress report: {"name": "chat_read", "n": 1}'
    )


@pytest.mark.anyio
async def test_a_soft_expectation_lets_the_test_continue() -> None:
    async with a_running_call() as (call, tool):
        tool.end.set()

        await expect.soft(call).to_fail()
        await expect.soft(call).to_succeed()

    [error] = take_soft_errors()
    assert error.startswith("chat_read: expected to fail, within 5 s")


@pytest.mark.anyio
async def test_how_long_is_waited_can_be_set_for_all_soft_or_not() -> None:
    async with a_running_call() as (call, _):
        expect.set_options(within=0.5)
        try:
            await expect.soft(call).to_succeed()
            with pytest.raises(AssertionError, match=r"within 0\.5 s"):
                await expect(call).to_succeed()
        finally:
            expect.set_options(within=5)

    [error] = take_soft_errors()
    assert "within 0.5 s" in error


@pytest.mark.anyio
async def test_a_word_that_is_not_known_is_refused_with_those_that_are() -> None:
    async with a_running_call() as (call, _):
        with pytest.raises(ValueError, match=r"which='idel': it must be 'idle' or 'ceiling'"):
            await expect(call).to_time_out("idel")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=r"level='warn': it must be 'debug', 'info', 'warn"):
            await expect(call).not_to_log("warn")  # type: ignore[arg-type]


@pytest.mark.parametrize("each", [expect, expect.soft])
def test_an_unsupported_object_is_refused(each: Any) -> None:
    with pytest.raises(
        TypeError, match=r"expect\(\) accepts a call, .* not a dict.*to_return\("
    ) as e:
        each({"greeting": "Hello"})

    assert "assert" in str(e.value)


@pytest.mark.anyio
async def test_progress_that_no_tool_could_report_is_an_error() -> None:
    wrong: Any = [
        ({"reports": {"progress": 1}}, "must be a list of reports, such as"),
        ({"reports": "abc"}, "must be a list of reports, such as"),
        ({"reports": [{"progres": 1}]}, "has no 'progres'; use 'progress', 'total' or 'message'"),
        ({"reports": [{}], "min": 1}, "Pass either the exact reports or min="),
        ({"min": "3"}, "min='3' must be a number of reports"),
    ]
    async with a_running_call() as (call, _):
        for arguments, problem in wrong:
            with pytest.raises(ValueError, match=problem):
                await expect(call).not_to_progress(**arguments)


@pytest.mark.anyio
async def test_a_time_that_is_not_a_number_is_an_error() -> None:
    wrong: Any = "2s"
    async with a_running_call() as (call, _):
        with pytest.raises(ValueError, match="within='2s' must be a number of seconds"):
            await expect(call).to_succeed(within=wrong)
    with pytest.raises(ValueError, match="within='2s' must be a number of seconds"):
        expect.set_options(within=wrong)
