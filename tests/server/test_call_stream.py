"""The events of a call, as documents for the command or page that made it."""

import json
from typing import Any

import anyio
import pytest

from opentabs_py.core.progress import Pace, ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.server.call_stream import CallStream, cancel_at_disconnect
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio


class Client:
    """What a client has received."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    async def send(self, message: Any) -> None:
        await anyio.lowlevel.checkpoint()
        self.messages.append(message)

    def documents(self) -> list[dict[str, Any]]:
        body = b"".join(each["body"] for each in self.messages if "body" in each)
        return [json.loads(line) for line in body.splitlines()]


async def test_what_happens_is_sent_at_once_and_the_outcome_ends_the_response() -> None:
    client = Client()
    stream = CallStream(client.send, Pace())
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            await stream.open()
            tasks.start_soon(stream.run)
            await until_all_wait()
            stream.send_call_id("c")
            stream.on_waiting("Allow it")
            stream.warn("old")
            stream.on_log([LogEntry(level="info", message="hello", time=0)])
            await until_all_wait()
            assert client.documents() == [
                {"callId": "c"},
                {"say": "Allow it"},
                {"warning": "old"},
                {"log": {"level": "info", "message": "hello"}},
            ]
            tasks.cancel_scope.cancel()
    stream.say("last")
    await stream.finish({"outcome": 1})
    assert client.documents()[-2:] == [{"say": "last"}, {"outcome": 1}]
    assert client.messages[0]["status"] == 200
    assert [each.get("more_body") for each in client.messages[1:]] == [True, True, False]


async def test_progress_is_sent_at_its_pace_and_the_last_of_it_before_the_outcome() -> None:
    client = Client()
    stream = CallStream(client.send, Pace(burst=1, rate=0.001))
    first, left_out, last = (ProgressReport(n, float(n), 3.0, f"step {n}") for n in range(3))
    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.run)
            await until_all_wait()
            stream.on_reports([first])
            await until_all_wait()
            stream.on_reports([left_out, last])
            await until_all_wait()
            sent = [each["progress"]["message"] for each in client.documents()]
            assert sent == ["step 0"]
            tasks.cancel_scope.cancel()
    await stream.finish({"outcome": 1})
    *_, progress, outcome = client.documents()
    assert progress["progress"]["message"] == "step 2"
    assert progress["progress"]["at"] >= 0
    assert outcome == {"outcome": 1}


async def test_what_a_slow_client_is_being_sent_when_the_call_ends_is_not_lost() -> None:
    client, reads = Client(), anyio.Event()

    async def send(message: Any) -> None:
        if "body" in message:
            await reads.wait()
        await client.send(message)

    stream = CallStream(send, Pace())

    async def receive() -> Any:
        await anyio.sleep_forever()

    async def make() -> dict[str, Any]:
        stream.warn("old")
        await until_all_wait()  # the warning is on its way
        stream.say("last")
        tasks.start_soon(read_at_last)
        return {"outcome": 1}

    async def read_at_last() -> None:
        await until_all_wait()
        reads.set()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            await stream.serve(receive, make)
    assert client.documents() == [{"warning": "old"}, {"say": "last"}, {"outcome": 1}]


async def test_of_too_many_notes_the_first_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opentabs_py.server.call_stream.WAITING_LOGS", 2)
    client = Client()
    stream = CallStream(client.send, Pace())
    for text in ("one", "two", "three"):
        stream.say(text)
    await stream.finish({})
    assert client.documents() == [{"say": "two"}, {"say": "three"}, {}]


async def test_only_a_client_that_goes_away_cancels_its_call() -> None:
    received = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive() -> Any:
        await anyio.lowlevel.checkpoint()
        return received.pop(0)

    scope = anyio.CancelScope()
    await cancel_at_disconnect(receive, scope)
    assert scope.cancel_called
    assert received == []
