"""A recording of a session, whose browser context has two ends: the test reports what pages do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from playwright.async_api import Error

from opentabs_py.core.recording.exchange import UNFINISHED
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallRefusedError
from opentabs_py.recording.values import WholeValues
from opentabs_py.session.recording import SessionRecorder
from tests.fakes import FakeBridge
from tests.served import Served
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

URL = "https://chat.example/"


@dataclass(eq=False)
class Request:
    """A request of a page, without headers."""

    url: str
    method: str = "GET"
    resource_type: str = "fetch"
    failure: str | None = None
    post_data_buffer: None = None
    service_worker: object = None
    timing: dict[str, float] = field(default_factory=lambda: {"startTime": 1000.0})
    headers: dict[str, str] = field(default_factory=dict[str, str])

    async def headers_array(self) -> list[dict[str, str]]:
        return []


@dataclass(eq=False)
class Response:
    """The site's response, without headers."""

    request: Request
    status: int = 200
    status_text: str = "OK"
    headers: dict[str, str] = field(default_factory=dict[str, str])

    async def headers_array(self) -> list[dict[str, str]]:
        return []

    async def body(self) -> bytes:
        return self.request.url.encode()


class Context:
    """A browser context without pages, as the recorder knows it."""

    pages = ()

    def __init__(self) -> None:
        self.cookies: list[str] | None = ["first"]
        self.listeners: dict[str, Callable[[Any], None]] = {}

    def on(self, event: str, listener: Callable[[Any], None]) -> None:
        self.listeners[event] = listener

    def remove_listener(self, event: str, _listener: Callable[[Any], None]) -> None:
        del self.listeners[event]

    async def storage_state(self) -> dict[str, Any]:
        if self.cookies is None:
            raise Error("Target page, context or browser has been closed")
        return {"cookies": self.cookies}

    def ask(self, url: str) -> Request:
        request = Request(url)
        self.listeners["request"](request)
        return request

    def answer(self, request: Request) -> None:
        self.listeners["response"](Response(request))
        self.listeners["requestfinished"](request)


class Rig:
    """A session of which a recording can be made."""

    def __init__(self) -> None:
        self.context = Context()
        self.tool_calls = Served(FakeBridge(value={"sent": 1})).tool_calls

    async def start(self) -> SessionRecorder:
        session: Any = SimpleNamespace(
            context=self.context,
            internals=SimpleNamespace(tool_calls=self.tool_calls),
            mcp_url="http://127.0.0.1:8377/mcp",
        )
        return await SessionRecorder.start(session, URL)


def settle_within(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    for name in ("core.recording.settling", "session.recording"):
        monkeypatch.setattr(f"opentabs_py.{name}.SETTLE_WITHIN", seconds)


async def test_a_recording_has_responses_calls_and_the_storage_at_both_ends() -> None:
    rig = Rig()
    recorder = await rig.start()
    rig.context.answer(rig.context.ask(f"{URL}messages"))
    await rig.tool_calls.call("chat_send", {"text": "hi"})
    rig.context.cookies = ["second"]

    recording = await recorder.stop()

    [exchange] = recording.exchanges
    assert exchange.response is not None
    assert (exchange.request.url, exchange.response.body) == (
        "https://chat.example/messages",
        b"https://chat.example/messages",
    )
    [call] = recording.calls
    assert (call.tool, call.arguments, call.value) == ("chat_send", {"text": "hi"}, {"sent": 1})
    assert (recording.url, recording.storage_state) == (URL, {"cookies": ["first"]})
    assert recording.storage_at_end == {"cookies": ["second"]}


async def test_what_pages_ask_of_our_own_server_is_not_recorded() -> None:
    rig = Rig()
    recorder = await rig.start()
    rig.context.answer(rig.context.ask("http://127.0.0.1:8377/playground/"))
    rig.context.answer(rig.context.ask("http://127.0.0.1:8378/playground/"))
    recording = await recorder.stop()
    assert [each.request.url for each in recording.exchanges] == [
        "http://127.0.0.1:8378/playground/"
    ]


async def test_arguments_that_cannot_be_sent_are_refused_as_if_nothing_were_recorded() -> None:
    rig = Rig()
    recorder = await rig.start()
    with pytest.raises(CallRefusedError, match="do not match its schema"):
        await rig.tool_calls.call("chat_send", {"text": "cut \ud83d"})
    assert (await recorder.stop()).calls == []


async def test_after_its_end_nothing_is_recorded() -> None:
    rig = Rig()
    rig.tool_calls.records.keep_values(WholeValues())
    recorder = await rig.start()
    await rig.tool_calls.call("chat_send", {"text": "during"})
    recording = await recorder.stop()
    await rig.tool_calls.call("chat_send", {"text": "after"})
    assert [call.arguments for call in recording.calls] == [{"text": "during"}]
    assert rig.context.listeners == {}


async def test_after_its_end_the_values_of_calls_are_no_longer_kept() -> None:
    rig = Rig()
    records: list[CallRecord] = []
    rig.tool_calls.records.observe(records.append)
    recorder = await rig.start()
    await rig.tool_calls.call("chat_send", {"text": "during"})
    await recorder.stop()
    await rig.tool_calls.call("chat_send", {"text": "after"})
    assert [record.arguments for record in records] == ['{"text":"during"}', None]


async def test_a_response_that_comes_while_it_ends_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle_within(monkeypatch, inf)
    rig = Rig()
    recorder = await rig.start()
    slow = rig.context.ask(f"{URL}slow")
    recordings: list[Any] = []

    async def stop() -> None:
        recordings.append(await recorder.stop())

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            await until_all_wait()
            assert recordings == []
            rig.context.answer(slow)
    assert recordings[0].exchanges[0].response.status == 200


async def test_settling_ends_with_the_last_response(monkeypatch: pytest.MonkeyPatch) -> None:
    settle_within(monkeypatch, inf)
    rig = Rig()
    recorder = await rig.start()
    first, second = (rig.context.ask(f"{URL}{name}") for name in ("first", "second"))
    settled = anyio.Event()

    async def settle() -> None:
        await recorder.wait_read()
        settled.set()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(settle)
            rig.context.answer(first)
            await until_all_wait()
            assert not settled.is_set()
            assert recorder.summary == "1 request, 1 running, 0 calls"
            rig.context.answer(second)
            await settled.wait()
    await recorder.stop()


async def test_what_gets_no_response_is_recorded_as_unfinished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle_within(monkeypatch, 0.01)
    rig = Rig()
    recorder = await rig.start()
    rig.context.ask(f"{URL}never")
    with anyio.fail_after(PATIENT):
        await recorder.wait_read()
        recording = await recorder.stop()
    [exchange] = recording.exchanges
    assert (exchange.response, exchange.error) == (None, UNFINISHED)


async def test_a_browser_that_was_closed_leaves_a_recording_without_its_last_storage() -> None:
    rig = Rig()
    recorder = await rig.start()
    rig.context.answer(rig.context.ask(URL))
    rig.context.cookies = None
    recording = await recorder.stop()
    assert len(recording.exchanges) == 1
    assert recording.storage_at_end is None
