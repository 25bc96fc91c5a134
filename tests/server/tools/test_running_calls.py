"""Calls that the server or the console ends."""

import anyio
import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.errors import CallError
from opentabs_py.server.tools.running_calls import RunningCalls
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("makes_of_it", ["nothing", "an exception", "a value"])
async def test_a_call_that_is_ended_fails_with_that_error_whatever_its_tool_makes_of_it(
    makes_of_it: str,
) -> None:
    running, call = RunningCalls(), ToolCall({}, Limits())

    async def tool() -> None:
        running.cancel(call.call_id, by="the user")
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            if makes_of_it == "nothing":
                raise
            if makes_of_it == "an exception":
                raise ValueError from None

    with (
        anyio.fail_after(PATIENT),
        pytest.raises(CallError) as caught,
        running.add("wait", call),
    ):
        await tool()
    assert caught.value.detail.code == "CANCELLED"
    assert call.call_id not in running


async def test_a_call_that_its_caller_cancels_is_cancelled() -> None:
    running, call = RunningCalls(), ToolCall({}, Limits())
    with anyio.CancelScope() as scope, running.add("wait", call):
        scope.cancel()
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert call.call_id not in running


async def test_an_exception_of_a_call_that_nobody_ended_is_its_own() -> None:
    running = RunningCalls()
    call = ToolCall({}, Limits())
    with pytest.raises(ValueError, match="its own"), running.add("wait", call):
        raise ValueError("its own")
