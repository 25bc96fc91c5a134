"""Observers receive the record of each call, however it ends."""

import logging
from collections.abc import Sequence

import anyio
import pytest
from mcp.client import Client
from mcp.types import Implementation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from opentabs_py.calling.call import CallOrigin
from opentabs_py.calling.running import CallLog, RunningCall
from opentabs_py.core import failures
from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import LogEntry
from opentabs_py.core.trace.record import CallRecord, RecordSoFar
from opentabs_py.errors import CallError, CallRefusedError, ErrorDetail, ToolFailedError
from opentabs_py.server.mcp.server import create_mcp_server
from opentabs_py.tracing.otel import span_exporter
from tests.fakes import (
    FakeBridge,
    a_bridge,
    a_document,
    a_manifest,
    a_tool,
    about_call,
    greeted,
    pages_of,
    running,
    tool_calls_of,
)
from tests.waiting import PATIENT, until_all_wait

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


class Observed:
    """A registry with an observer; its bridge ends calls as configured in `FakeBridge`."""

    def __init__(
        self,
        *,
        value: object = None,
        error: Exception | None = None,
        reports: Sequence[ProgressReport] = (),
    ) -> None:
        self.bridge = FakeBridge(value={} if value is None else value, error=error, reports=reports)
        self.tool_calls = tool_calls_of(
            self.bridge.pages, limits=Limits(1.0, 2.0), message_limit=1000
        )
        self.registry = self.tool_calls.registry
        self.registry.set_plugins([a_manifest(a_tool("send", input_schema=SCHEMA))])
        self.records: list[CallRecord] = []
        self.end = self.tool_calls.records.observe(self.records.append)

    async def call(self, name: str = "chat_send", **arguments: object) -> CallRecord:
        with anyio.fail_after(PATIENT):
            await self.tool_calls.call(name, arguments)
        return self.records[-1]

    async def fail(self, name: str = "chat_send", **arguments: object) -> CallRecord:
        with pytest.raises((CallError, ValueError)), anyio.fail_after(PATIENT):
            await self.tool_calls.call(name, arguments)
        return self.records[-1]


async def test_while_nobody_observes_no_call_is_traced() -> None:
    observed = Observed()
    observed.end()
    await observed.tool_calls.call("chat_send", {})
    assert observed.bridge.received[0].call.recorder is None
    assert observed.records == []


async def test_an_observer_may_do_without_a_trace_and_still_receive_the_records() -> None:
    observed = Observed(reports=[ProgressReport(0)])
    observed.end()
    records: list[CallRecord] = []
    end = observed.tool_calls.records.observe(records.append, traced=False)
    await observed.tool_calls.call("chat_send", {}, origin=CallOrigin(name="opentabs call"))
    end()
    await observed.tool_calls.call("chat_send", {})
    [record] = records
    assert (record.outcome, record.plugin, record.client) == ("succeeded", "chat", "opentabs call")
    assert (record.report_count, record.progress) == (0, ())
    recorder = observed.bridge.received[0].call.recorder
    assert recorder is not None
    assert not recorder.is_traced


@pytest.mark.parametrize("traced", [False, True])
async def test_a_caller_may_ask_for_the_record_while_nobody_observes(traced: bool) -> None:
    observed = Observed()
    observed.end()
    records: list[CallRecord] = []
    await observed.tool_calls.call("chat_send", {}, on_record=records.append, traced=traced)
    assert [record.outcome for record in records] == ["succeeded"]
    recorder = observed.bridge.received[0].call.recorder
    assert recorder is not None
    assert recorder.is_traced is traced


async def test_both_kinds_of_observers_receive_the_record_of_a_traced_call() -> None:
    observed = Observed(reports=[ProgressReport(0)])
    others: list[CallRecord] = []
    observed.tool_calls.records.observe(others.append, traced=False)
    await observed.call()
    assert others == observed.records
    assert others[0].report_count == 1


async def test_a_call_that_succeeds_is_recorded_with_its_names_limits_and_progress() -> None:
    record = await Observed(reports=[ProgressReport(0, 1.0, 2.0, "half")]).call()
    assert (record.name, record.plugin, record.tool) == ("chat_send", "chat", "send")
    assert (record.outcome, record.limits) == ("succeeded", Limits(1.0, 2.0))
    assert [mark.message for mark in record.progress] == ["half"]


async def test_limits_given_with_a_call_are_those_of_its_record() -> None:
    observed = Observed()
    await observed.tool_calls.call("chat_send", {}, limits=Limits(7.0, 8.0))
    assert observed.records[0].limits == Limits(7.0, 8.0)


TOOLS_OWN = ToolFailedError(ErrorDetail("RATE_LIMITED", "Slow down."))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TOOLS_OWN, "failed"),
        (failures.lost("tab_closed"), "lost"),
        (ValueError("a bug of ours"), "failed"),
    ],
)
async def test_a_call_that_fails_is_recorded_and_still_fails(
    error: Exception, outcome: str
) -> None:
    observed = Observed(error=error)
    with pytest.raises(type(error)) as caught:
        await observed.tool_calls.call("chat_send", {})
    assert caught.value is error
    assert [record.outcome for record in observed.records] == [outcome]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_record_names_the_client_that_made_the_call(mode: str) -> None:
    observed = Observed()
    info = Implementation(name="claude-code\n\x1b", version="2.1.0")
    server = create_mcp_server(observed.tool_calls)
    async with Client(server, mode=mode, client_info=info) as client:
        await client.call_tool("chat_send", {})
    assert observed.records[0].client == "claude-code   2.1.0"


async def test_a_call_may_be_made_in_the_name_of_a_command() -> None:
    observed = Observed()
    await observed.tool_calls.call("chat_send", {}, origin=CallOrigin(name="opentabs call"))
    await observed.tool_calls.call("chat_send", {})
    assert [record.client for record in observed.records] == ["opentabs call", None]


async def test_a_call_has_one_id_for_its_caller_and_its_record() -> None:
    observed = Observed()
    await observed.tool_calls.call("chat_send", {}, call_id="mine")
    assert [record.call_id for record in observed.records] == ["mine"]


async def test_two_running_calls_cannot_have_the_same_id() -> None:
    observed = Observed()

    async def again() -> None:
        with pytest.raises(CallRefusedError, match="is still running"):
            await observed.tool_calls.call("chat_send", {}, call_id="mine")

    async with anyio.create_task_group() as tasks:

        def begin_another(_: RecordSoFar) -> None:
            tasks.start_soon(again)

        observed.tool_calls.records.observe(lambda _: None, on_start=begin_another)
        await observed.tool_calls.call("chat_send", {}, call_id="mine")
    await observed.tool_calls.call("chat_send", {}, call_id="mine")
    assert [record.outcome for record in observed.records] == ["succeeded"] * 2


async def test_a_call_of_an_unknown_tool_is_recorded_as_refused() -> None:
    record = await Observed().fail("chat_sent")
    assert (record.outcome, record.name, record.plugin) == ("refused", "chat_sent", None)


async def test_a_call_with_wrong_arguments_is_recorded_with_its_tool_but_without_them() -> None:
    record = await Observed().fail(text=["a secret"])
    assert (record.outcome, record.plugin, record.tool) == ("refused", "chat", "send")
    assert "secret" not in str(record)


async def test_a_call_that_is_cancelled_is_recorded_and_stays_cancelled() -> None:
    observed = Observed()
    observed.bridge.hangs = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(observed.tool_calls.call, "chat_send", {})
        await until_all_wait()
        tasks.cancel_scope.cancel()
    assert [record.outcome for record in observed.records] == ["cancelled"]


async def test_arguments_and_result_are_in_the_record_only_when_asked_for() -> None:
    observed = Observed(value={"ok": 1})
    record = await observed.call(text="hi")
    assert (record.arguments, record.result) == (None, None)
    end = observed.tool_calls.records.keep_values(Excerpts(lambda: ["my secret"]))
    record = await observed.call(text="hi, my secret")
    assert (record.arguments, record.result) == ('{"text":"hi, •••"}', '{"ok":1}')
    end()
    record = await observed.call(text="hi")
    assert (record.arguments, record.result) == (None, None)


async def test_values_are_kept_as_whoever_asked_last_and_still_wants_them() -> None:
    observed = Observed()
    end_first = observed.tool_calls.records.keep_values(Excerpts(lambda: ["the first"]))
    end_last = observed.tool_calls.records.keep_values(Excerpts(lambda: ["the last"]))
    end_first()
    record = await observed.call(text="the first, the last")
    assert record.arguments == '{"text":"the first, •••"}'
    end_last()
    end_last()  # which may be called again
    record = await observed.call(text="the first, the last")
    assert record.arguments is None


async def test_a_caller_gets_progress_and_logs_even_while_another_observes() -> None:
    observed = Observed(reports=[ProgressReport(0)])
    running = RunningCall("chat_send", {})
    await running.run(observed.tool_calls, None)
    assert running.progress == [ProgressReport(0)]
    entry = LogEntry(level="info", message="hello", time=0)
    observed.bridge.received[0].call.notify_log([entry])
    assert running.logs == [CallLog("info", "hello", 0.0)]


async def test_every_observer_is_called_and_a_failing_one_affects_no_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    observed, others = Observed(), list[CallRecord]()

    def fail(_record: CallRecord) -> None:
        raise RuntimeError("an observer's own bug")

    observed.tool_calls.records.observe(fail)
    observed.tool_calls.records.observe(others.append)
    with caplog.at_level(logging.ERROR):
        await observed.call()
    assert others == observed.records
    assert "A listener to calls failed" in caplog.messages


async def test_an_observer_of_starts_can_look_at_a_call_while_it_runs() -> None:
    observed, started = Observed(), list[RecordSoFar]()
    end = observed.tool_calls.records.observe(lambda _record: None, on_start=started.append)
    observed.bridge.hangs = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(observed.tool_calls.call, "chat_send", {})
        with anyio.fail_after(PATIENT):
            await observed.bridge.called.wait()
        seen = started[0]()
        tasks.cancel_scope.cancel()
    end()
    observed.bridge.hangs = False
    await observed.call()

    assert (seen.name, seen.call_id) == ("chat_send", observed.records[0].call_id)
    assert len(started) == 1


async def test_ending_an_observation_twice_is_harmless() -> None:
    observed, others = Observed(), list[CallRecord]()
    observed.tool_calls.records.observe(others.append)
    observed.end()
    observed.end()
    await observed.tool_calls.call("chat_send", {})
    assert (len(observed.records), len(others)) == (0, 1)


async def test_a_call_through_a_bridge_is_recorded_with_stamps_logs_and_time_left() -> None:
    bridge = a_bridge()
    calls = tool_calls_of(pages_of(bridge), limits=Limits(5.0, 9.0))
    calls.registry.set_plugins([a_manifest(a_tool("send"))])
    records: list[CallRecord] = []
    calls.records.observe(records.append)
    async with running(bridge) as connect, anyio.create_task_group() as tasks:
        socket = await greeted(connect, a_document())
        tasks.start_soon(calls.call, "chat_send", {})
        params = (await socket.hear("tool.dispatch"))["params"]
        entry = {"level": "warning", "message": "slow", "time": 0}
        about = {"documentId": params["documentId"], "plugin": "chat"}
        socket.say({"method": "plugin.log", "params": {**about, "entries": [entry]}})
        socket.say(about_call("tool.progress", params["callId"], reports=[{"seq": 0}]))
        socket.say(about_call("tool.result", params["callId"], seq=1, value={}))
    (record,) = records
    assert [mark.message for mark in record.logs] == ["slow"]
    assert record.report_count == 1
    assert {"server.accepted", "server.sent", "server.received"} == record.stamps.keys()
    assert record.left is not None
    assert 0 < record.left.idle <= 5.0 < record.left.ceiling <= 9.0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_calls_span_is_the_child_of_the_mcp_sdks_span_of_its_request(
    monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr("mcp.shared._otel._tracer", provider.get_tracer("mcp-python-sdk"))
    observed = Observed(value={"sent": True})
    observed.tool_calls.records.observe(span_exporter(tracer_provider=provider))
    server = create_mcp_server(observed.tool_calls)
    async with Client(server, mode=mode) as client:
        with anyio.fail_after(PATIENT):
            await client.call_tool("chat_send", {})
    spans = {span.name: span for span in kept.get_finished_spans()}
    ours = spans["opentabs.call chat_send"]
    served = [
        span
        for span in kept.get_finished_spans()
        if span.attributes is not None
        and span.attributes.get("gen_ai.tool.name") == "chat_send"
        and span.kind.name == "SERVER"
    ]
    assert [span.context for span in served] == [ours.parent]
    assert served[0].start_time is not None
    assert ours.start_time is not None
    assert served[0].start_time <= ours.start_time
