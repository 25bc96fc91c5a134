"""Metrics for Prometheus, and health checks, on a separate port.

Anyone who can connect may read them: they are numbers, and names of plugins.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from opentabs_py.core import metrics
from opentabs_py.core.metrics import Metric, Role
from opentabs_py.core.page_tool_names import PAGE_OWNERS
from opentabs_py.core.plugin_names import PAGE
from opentabs_py.core.readiness import STARTING, Readiness
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import ConfigError
from opentabs_py.server.http.refusals import why_refused
from opentabs_py.server.tools.tool_calls import ToolCalls

try:
    from prometheus_client import (
        CollectorRegistry,
        Counter,
        GCCollector,
        Histogram,
        PlatformCollector,
        ProcessCollector,
        generate_latest,
    )
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as missing:
    raise ConfigError(
        "Metrics need the package prometheus-client. Install it: pip install 'opentabs-py[fleet]'"
    ) from missing

Values = Mapping[Metric, float | Mapping[str, float]]
"""What gauges and counters read now: a number, or one for each plugin."""

_ROLE: Final = "role"
_TEXT_FORMAT: Final = "text/plain; version=0.0.4; charset=utf-8"  # which every Prometheus reads


class MeasuredProcess(Protocol):
    """The readings of a process."""

    @property
    def role(self) -> Role:
        """What kind of process it is."""
        ...

    def readiness(self) -> Readiness:
        """Return whether it can take calls now."""
        ...

    def read(self) -> Values:
        """Return what it has and does now."""
        ...


class CallMetrics:
    """Counts calls, from their records.

    Args:
        registry: Where the metrics are registered.
        role: What kind of process this is.
        owner_of: Returns the owner of a tool by its MCP name; None if there is no such tool.
    """

    def __init__(
        self, registry: CollectorRegistry, role: Role, owner_of: Callable[[str], str | None]
    ) -> None:
        self._role = role
        self._owner_of = owner_of
        self._calls = _counter(metrics.CALLS, registry)
        self._seconds = _histogram(metrics.CALL_SECONDS, registry)
        self._hops = _histogram(metrics.HOP_SECONDS, registry)
        self._reports = _counter(metrics.REPORTS, registry)

    def observe(self, record: CallRecord) -> None:
        """Count a call that has ended."""
        # Not by its name, which the client chose.
        owner = record.plugin or self._owner_of(record.name) or metrics.NO_TOOL
        if owner.startswith(PAGE_OWNERS):  # and then names a site
            owner = PAGE
        self._calls.labels(self._role, owner, record.outcome).inc()
        self._seconds.labels(self._role, owner).observe(record.seconds)
        self._reports.labels(self._role, owner).inc(record.report_count)
        if len(record.stamps) > 1:  # else it was never sent to a page
            for span in record.waterfall().spans:
                self._hops.labels(self._role, span.hop).observe(span.seconds)


class Exporter:
    """Exports the metrics of one process; until it is attached to a session, "starting"."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._source: MeasuredProcess | None = None
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)

    @property
    def readiness(self) -> Readiness:
        """Whether the process can take calls now."""
        return STARTING if self._source is None else self._source.readiness()

    def attach(self, calls: ToolCalls, source: MeasuredProcess) -> None:
        """Count the calls of a session from now on, and export what it knows of itself.

        Calls are traced from then on, which costs each call of a tool in a page half a millisecond.
        """

        def owner_of(name: str) -> str | None:
            tool = calls.registry.get(name)
            return None if tool is None else tool.listing.owner

        calls.records.observe(CallMetrics(self._registry, source.role, owner_of).observe)
        self._registry.register(_State(source))
        self._source = source

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def app(self) -> Starlette:
        """Return the ASGI application."""

        async def report_metrics(_request: Request) -> Response:
            return Response(self.text(), media_type=_TEXT_FORMAT)

        async def report_health(_request: Request) -> Response:
            return PlainTextResponse("alive\n")

        async def report_readiness(_request: Request) -> Response:
            now = self.readiness
            if now.ready:
                return PlainTextResponse(f"ready: {now.why}\n")
            return PlainTextResponse(f"not ready: {now.why}\n", status_code=503)

        return Starlette(
            routes=[
                Route("/metrics", report_metrics),
                Route("/healthz", report_health),
                Route("/readyz", report_readiness),
            ],
            exception_handlers={HTTPException: _refuse},
        )


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    why = why_refused(request, error, instead="See /metrics, /healthz and /readyz.")
    return PlainTextResponse(f"{why}\n", error.status_code, error.headers)


class _State(Collector):
    """Reads what a process knows of itself whenever it is asked."""

    def __init__(self, source: MeasuredProcess) -> None:
        self._source = source

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """Yield its metrics."""
        ready = {metrics.READY: float(self._source.readiness().ready)}
        for metric, value in {**ready, **self._source.read()}.items():
            family = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            each = family(metric.name, metric.help, labels=_labels(metric))
            values = value if isinstance(value, Mapping) else {"": value}
            for plugin, number in values.items():
                labels = (self._source.role, plugin)
                each.add_metric(labels[: 1 + len(metric.labels)], number)
            yield each


def _labels(metric: Metric) -> tuple[str, ...]:
    return (_ROLE, *metric.labels)


def _counter(metric: Metric, registry: CollectorRegistry) -> Counter:
    return Counter(metric.name, metric.help, _labels(metric), registry=registry)


def _histogram(metric: Metric, registry: CollectorRegistry) -> Histogram:
    return Histogram(
        metric.name, metric.help, _labels(metric), registry=registry, buckets=metric.buckets
    )
