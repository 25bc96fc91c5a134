"""What an MCP client receives while a call waits for the user, and after that."""

import anyio
import pytest
from mcp.client import Client

from opentabs_py.consent.gate import REMIND_AFTER
from opentabs_py.core.progress import ProgressReport
from opentabs_py.server.mcp.server import create_mcp_server
from tests.consent.chain import Chain
from tests.fakes import FakeBridge
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

WAITING = "Waiting for the user to allow chat_send."


async def test_reminders_leave_room_for_the_progress_of_the_tool() -> None:
    reports = [ProgressReport(0, 0.5, 1.0, "Half")]
    chain = Chain(bridge=FakeBridge(value={"sent": True}, reports=reports))
    questions = chain.gate.questions
    received: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        received.append((progress, total, message))

    server = create_mcp_server(chain.tool_calls)
    with anyio.fail_after(PATIENT), questions.shown():
        async with Client(server) as client, chain.running() as tasks:

            async def call() -> None:
                await client.call_tool("chat_send", {}, progress_callback=note)
                tasks.cancel_scope.cancel()

            tasks.start_soon(call)
            while not questions.waiting:
                await until_all_wait()
            for _ in range(2):
                chain.clock.move(REMIND_AFTER)
                await until_all_wait()
            questions.answer(questions.waiting[0].id, "once", by="console")
            await anyio.sleep_forever()
    assert [message for _, _, message in received] == [WAITING] * 3 + ["Half"]
    assert received[-1][:2] == (0.5, 1.0)
