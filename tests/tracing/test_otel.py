"""Calls as OpenTelemetry spans."""

import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ConfigError
from opentabs_py.tracing.otel import span_exporter
from tests.tracing.examples import CANCELLED, STARTED, SUCCEEDED, TIMED_OUT

NS = 1_000_000_000


class Spans:
    """A provider that keeps its spans."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def all(self) -> Sequence[ReadableSpan]:
        return self._kept.get_finished_spans()

    def of_call(self, record: CallRecord) -> tuple[ReadableSpan, list[ReadableSpan]]:
        span_exporter(tracer_provider=self.provider)(record)
        *hops, call = self.all()
        return call, hops


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_call_is_a_span_with_a_child_for_each_hop_at_their_times() -> None:
    call, hops = Spans().of_call(SUCCEEDED)
    start = round(STARTED * NS)
    assert call.name == "opentabs.call demo_export_messages"
    assert (call.start_time, call.end_time) == (start, start + 1_200_000_000)
    assert [hop.name for hop in hops] == [span.hop for span in SUCCEEDED.waterfall().spans]
    assert all(hop.parent == call.context for hop in hops)
    sent = hops[1]
    assert sent.start_time == pytest.approx(start + 250_000, abs=1000)
    assert sent.end_time == pytest.approx(start + 750_000, abs=1000)


def test_attributes_have_the_names_of_the_conventions_where_there_is_one() -> None:
    call, _ = Spans().of_call(TIMED_OUT)
    has = attributes(call)
    assert has["gen_ai.tool.name"] == "demo_export_messages"
    assert has["gen_ai.tool.call.id"] == TIMED_OUT.call_id
    assert has["error.type"] == "TIMEOUT_IDLE"
    assert (has["opentabs.timer"], has["opentabs.reached"]) == ("idle", "page")
    assert has["opentabs.worker.restarts"] == 1
    assert "gen_ai.tool.call.arguments" not in has


def test_progress_logs_and_the_link_are_events_at_their_times() -> None:
    call, _ = Spans().of_call(TIMED_OUT)
    assert [event.name for event in call.events] == [
        "progress",
        "log",
        "the extension disconnected",
        "the extension reconnected",
    ]
    progress = call.events[0]
    assert progress.timestamp == round((STARTED + 1.5) * NS)
    assert dict(progress.attributes or {}) == {
        "opentabs.progress.progress": 1.0,
        "opentabs.progress.total": 3.0,
        "opentabs.progress.message": "page 1",
    }


def test_a_call_that_failed_has_the_status_of_an_error_and_so_has_the_hop_it_ended_in() -> None:
    call, hops = Spans().of_call(TIMED_OUT)
    assert call.status.status_code is StatusCode.ERROR
    assert (call.status.description or "").startswith("Timed out (idle)")
    codes = [hop.status.status_code for hop in hops]
    assert codes == [StatusCode.UNSET] * 4 + [StatusCode.ERROR]


@pytest.mark.parametrize("record", [SUCCEEDED, CANCELLED])
def test_a_call_that_succeeded_or_was_cancelled_is_not_an_error(record: CallRecord) -> None:
    call, _ = Spans().of_call(record)
    assert call.status.status_code is StatusCode.UNSET


def test_a_call_within_another_span_is_its_child_and_no_second_execution_of_a_tool() -> None:
    spans = Spans()
    with spans.provider.get_tracer("mine").start_as_current_span("mine") as mine:
        call, _ = spans.of_call(SUCCEEDED)
    assert call.parent == mine.get_span_context()
    assert "gen_ai.operation.name" not in attributes(call)


def test_a_call_without_another_span_is_the_execution_of_a_tool() -> None:
    call, _ = Spans().of_call(SUCCEEDED)
    assert call.parent is None
    assert attributes(call)["gen_ai.operation.name"] == "execute_tool"


def test_a_call_that_is_not_sampled_makes_no_spans_of_hops() -> None:
    spans = Spans()
    spans.provider.sampler = ALWAYS_OFF
    span_exporter(tracer_provider=spans.provider)(SUCCEEDED)
    assert spans.all() == ()


def test_without_opentelemetry_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    with pytest.raises(ConfigError, match=r"pip install 'opentabs-py\[otel\]'"):
        span_exporter()
