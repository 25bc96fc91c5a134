"""Export calls as OpenTelemetry spans, nested in those of the MCP SDK.

The SDK creates a span for each request (`tools/call NAME`) and keeps it current while the tool
runs, so a call's span is its child, and contains hops, progress and logs. The SDK's span already
counts as the execution of a tool (`gen_ai.operation.name`), so ours says so only without a parent.
Attributes without a convention start with `opentabs.`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ConfigError
from opentabs_py.tracing.words import link_text

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider
    from opentelemetry.util.types import AttributeValue

SCOPE = "opentabs-py"


def span_exporter(
    *, tracer_provider: "TracerProvider | None" = None
) -> Callable[[CallRecord], None]:
    """Return a function for `CallRecords.observe` that turns calls into spans.

    It must run in the context in which the call was made, because the current span is the parent.

    Args:
        tracer_provider: By default the global one. If none is configured, spans are discarded: run
            under `opentelemetry-instrument`, or set a provider.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """
    try:
        from opentelemetry.trace import get_tracer  # noqa: PLC0415 (an extra)
    except ImportError:
        raise ConfigError(
            "OpenTelemetry is not installed. Install it: pip install 'opentabs-py[otel]'"
        ) from None
    tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)
    return lambda record: _export(tracer, record)


def _export(tracer: "Tracer", record: CallRecord) -> None:
    from opentelemetry.trace import (  # noqa: PLC0415
        StatusCode,
        get_current_span,
        set_span_in_context,
    )

    waterfall = record.waterfall()
    start = record.started - record.lead(waterfall)
    attributes = _attributes(record)
    if not get_current_span().get_span_context().is_valid:
        attributes["gen_ai.operation.name"] = "execute_tool"
    call = tracer.start_span(
        f"opentabs.call {record.name}", attributes=attributes, start_time=_ns(start)
    )
    if record.outcome not in ("succeeded", "cancelled"):
        call.set_status(StatusCode.ERROR, None if record.error is None else record.error.message)
    _add_events(call, record)
    within = set_span_in_context(call)
    end = record.started + record.seconds
    for each in waterfall.spans:
        hop_start = start + each.start
        hop_end = hop_start + each.seconds
        end = max(end, hop_end)
        hop = tracer.start_span(
            each.hop,
            context=within,
            attributes={"opentabs.hop.carrier": each.carrier},
            start_time=_ns(hop_start),
        )
        if each.unfinished:
            hop.set_status(StatusCode.ERROR, "the call ended here")
        hop.end(_ns(hop_end))
    call.end(_ns(end))


def _attributes(record: CallRecord) -> "dict[str, AttributeValue]":
    attributes: dict[str, AttributeValue | None] = {
        "gen_ai.tool.name": record.name,
        "gen_ai.tool.call.id": record.call_id,
        "gen_ai.tool.call.arguments": record.arguments,
        "gen_ai.tool.call.result": record.result,
        "url.full": record.url,
        "error.type": None if record.error is None else record.error.code,
        "exception.stacktrace": None if record.error is None else record.error.stack,
        "opentabs.plugin": record.plugin,
        "opentabs.tab.id": record.tab_id,
        "opentabs.outcome": record.outcome,
        "opentabs.timer": record.timer,
        "opentabs.reached": record.reached,
        "opentabs.progress.reports": record.report_count,
        "opentabs.progress.dropped": record.dropped,
        "opentabs.worker.restarts": record.service_worker_restarts,
        "opentabs.limits.idle": record.limits.idle,
        "opentabs.limits.ceiling": record.limits.ceiling,
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _add_events(call: "Span", record: CallRecord) -> None:
    for mark in record.progress:
        progress = {"progress": mark.progress, "total": mark.total, "message": mark.message}
        call.add_event(
            "progress",
            {f"opentabs.progress.{k}": value for k, value in progress.items() if value is not None},
            _ns(record.started + mark.at),
        )
    for log in record.logs:
        said_by = {"opentabs.log.level": log.level, "opentabs.log.message": log.message}
        call.add_event("log", said_by, _ns(record.started + log.at))
    for link in record.links[1:]:  # the first is how the link was when the call was sent
        boot = {} if link.boot_id is None else {"opentabs.worker.boot_id": link.boot_id}
        call.add_event(link_text(link), boot, _ns(record.started + link.at))


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)
