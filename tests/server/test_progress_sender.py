"""The log messages of a call that its client receives while it runs."""

from typing import Literal

import pytest

from opentabs_py.calling.tool import ToolCall
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.tabs import Target
from tests.fakes import FakeBridge, Json
from tests.served import INITIALIZED, Served, raw_client

pytestmark = pytest.mark.anyio

LEVELS: tuple[Literal["debug", "info", "warning"], ...] = ("debug", "info", "warning")


class LoggingBridge(FakeBridge):
    """A page whose plugin logs one message of each level in every call."""

    async def call(self, target: Target, tool: str, call: ToolCall) -> object:
        call.notify_log([LogEntry(level=each, message=each, time=0) for each in LEVELS])
        return await super().call(target, tool, call)


@pytest.mark.parametrize(
    ("least", "sent"),
    [
        (None, ["info", "warning"]),
        ("debug", ["debug", "info", "warning"]),
        ("warning", ["warning"]),
        ("emergency", []),
    ],
)
async def test_a_client_receives_the_logs_of_the_levels_it_wants_before_the_result(
    least: str | None, sent: list[str]
) -> None:
    served = Served(LoggingBridge(value={"sent": True}))
    async with raw_client(served.server) as client:
        await client.say(INITIALIZED)
        if least is not None:
            await client.say({"id": 2, "method": "logging/setLevel", "params": {"level": least}})
            assert (await client.read())["id"] == 2
        params = {"name": "chat_send", "arguments": {}}
        await client.say({"id": 3, "method": "tools/call", "params": params})
        logs: list[Json] = []
        while "id" not in (message := await client.read()):
            logs.append(message["params"])
    assert message["result"]["structuredContent"] == {"sent": True}
    assert [each["level"] for each in logs] == [each["data"] for each in logs] == sent
    assert {each["logger"] for each in logs} <= {"chat"}
