"""What the client of a call receives while it runs, besides its streams' updates."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

import anyio
import pytest

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.streams import StreamUpdate
from opentabs_py.core.progress import Pace, ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.tabs.selection import Target
from opentabs_py.server.mcp import progress_sender
from opentabs_py.server.mcp.connections import ClientConnection
from opentabs_py.server.mcp.progress_sender import ProgressSender
from tests.fakes import FakeBridge, Json
from tests.served import INITIALIZED, Served, raw_client
from tests.waiting import PATIENT, until_all_wait

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


class HungClient:
    """A client's session that reads no progress, but whatever else it is sent."""

    client_params = None

    def __init__(self) -> None:
        self.updates: list[str] = []

    async def report_progress(self, *_: object) -> None:
        await anyio.sleep_forever()

    async def send_notification(self, notification: Any, _related: object) -> None:
        self.updates.append(notification.params.message)


class Stream:
    """A stream with one update."""

    id, uri, name, is_open = "s", "stream://s", "chat_watch", False

    def since(self, number: int) -> Sequence[StreamUpdate]:
        return [StreamUpdate(1, "new")] if number == 0 else []


async def test_a_client_that_reads_no_progress_does_not_hold_up_the_result_of_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_sender, "HUNG_CLIENT", 0.05)
    client = HungClient()
    ctx: Any = SimpleNamespace(
        session=client,
        request_id=1,
        request=None,
        protocol_version="2025-03-26",
        meta={"progress_token": "t"},
        lifespan_context=SimpleNamespace(session_key=lambda _: None),
    )
    sender = ProgressSender(ctx, connection=ClientConnection(), logger=None, pace=Pace())
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            sender.start(tasks)
            sender.on_reports([ProgressReport(0, 1)])
            await until_all_wait()
            sender.follow(Stream())
            await sender.finish()
            tasks.cancel_scope.cancel()
    assert client.updates == ["new"]
