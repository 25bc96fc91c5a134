"""The metrics that a process exports: their names, their labels, and what they mean.

Each has the label `role`, so that a call is not counted twice where both its endpoint and its
worker are read. No label has values that an MCP client or a page can choose: plugins are named by
those who run the process, and hops and outcomes are ours.
"""

from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["server", "endpoint", "worker"]
Kind = Literal["counter", "gauge", "histogram"]

EVERY_ROLE: Final[tuple[Role, ...]] = ("server", "endpoint", "worker")
# Calls that name no tool are counted together; no plugin can have this id.
NO_TOOL: Final = "(none)"


@dataclass(frozen=True, slots=True)
class Metric:
    """What is measured.

    Attributes:
        name: Its name; that of a counter ends in `_total`.
        kind: How it is read.
        help: What it means, in a line.
        labels: Its labels, besides `role`.
        roles: The processes that export it.
        buckets: The upper bounds of a histogram's buckets, in seconds.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    roles: tuple[Role, ...] = EVERY_ROLE
    buckets: tuple[float, ...] = ()


CALLS: Final = Metric(
    "opentabs_calls_total",
    "counter",
    "Calls that have ended, by their outcome.",
    ("plugin", "outcome"),
)
CALL_SECONDS: Final = Metric(
    "opentabs_call_duration_seconds",
    "histogram",
    "How long calls took, from their arrival to their end.",
    ("plugin",),
    # Up to the ceiling that calls have by default.
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
)
HOP_SECONDS: Final = Metric(
    "opentabs_hop_duration_seconds",
    "histogram",
    "How long calls of tools in pages took for each hop.",
    ("hop",),
    # A hop without a tool takes half a millisecond.
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1, 5, 30, 300),
)
REPORTS: Final = Metric(
    "opentabs_progress_reports_total",
    "counter",
    "Progress reports of calls, counted when the call ends.",
    ("plugin",),
)
RUNNING: Final = Metric(
    "opentabs_calls_running", "gauge", "Calls running now, excluding those that wait for a worker."
)
READY: Final = Metric("opentabs_ready", "gauge", "1 if /readyz answers 200, else 0.")

_WITH_BROWSERS: Final[tuple[Role, ...]] = ("server", "worker")
BROWSERS: Final = Metric(
    "opentabs_browsers", "gauge", "Browsers of this process.", roles=_WITH_BROWSERS
)
CONNECTED: Final = Metric(
    "opentabs_browsers_connected",
    "gauge",
    "Browsers whose extension is connected.",
    roles=_WITH_BROWSERS,
)
RESTARTS: Final = Metric(
    "opentabs_browser_restarts_total",
    "counter",
    "Times that a browser was relaunched.",
    roles=_WITH_BROWSERS,
)
DROPPED_REPORTS: Final = Metric(
    "opentabs_progress_reports_dropped_total",
    "counter",
    "Progress reports that pages dropped, because over 8 MiB of reports of one call were waiting.",
    roles=_WITH_BROWSERS,
)
LATE_MESSAGES: Final = Metric(
    "opentabs_late_messages_total",
    "counter",
    "Messages from pages that arrived after their call had ended; they are ignored.",
    roles=_WITH_BROWSERS,
)
TABS_READY: Final = Metric(
    "opentabs_tabs_ready",
    "gauge",
    "Tabs in which the plugin's tools work now.",
    ("plugin",),
    roles=_WITH_BROWSERS,
)

_WORKER: Final[tuple[Role, ...]] = ("worker",)
RUNNING_MOST: Final = Metric(
    "opentabs_calls_running_max",
    "gauge",
    "How many calls may run in this worker at once.",
    roles=_WORKER,
)
MEMORY: Final = Metric(
    "opentabs_worker_memory_bytes",
    "gauge",
    "Memory of this worker and its browsers, shared pages in proportion; measured every 10 s.",
    roles=_WORKER,
)

_ENDPOINT: Final[tuple[Role, ...]] = ("endpoint",)
WAITING: Final = Metric(
    "opentabs_calls_waiting", "gauge", "Calls that wait for a worker.", roles=_ENDPOINT
)
WAITING_MOST: Final = Metric(
    "opentabs_calls_waiting_max",
    "gauge",
    "How many calls may wait; more are refused.",
    roles=_ENDPOINT,
)
WORKERS: Final = Metric(
    "opentabs_fleet_workers",
    "gauge",
    "Workers that this endpoint can use.",
    roles=_ENDPOINT,
)
FLEET_BROWSERS: Final = Metric(
    "opentabs_fleet_browsers", "gauge", "Browsers of these workers.", roles=_ENDPOINT
)
FLEET_RUNNING: Final = Metric(
    "opentabs_fleet_calls_running",
    "gauge",
    "Calls that run in these workers, for any endpoint.",
    roles=_ENDPOINT,
)
FLEET_MOST: Final = Metric(
    "opentabs_fleet_calls_running_max",
    "gauge",
    "How many calls may run in these workers at once.",
    roles=_ENDPOINT,
)
PLUGIN_WORKERS: Final = Metric(
    "opentabs_fleet_plugin_workers",
    "gauge",
    "Of these workers, how many serve the plugin.",
    ("plugin",),
    roles=_ENDPOINT,
)
PLUGIN_BROWSERS: Final = Metric(
    "opentabs_fleet_plugin_browsers",
    "gauge",
    "Browsers of the workers that serve the plugin.",
    ("plugin",),
    roles=_ENDPOINT,
)
PLUGIN_TABS_READY: Final = Metric(
    "opentabs_fleet_plugin_tabs_ready",
    "gauge",
    "Tabs of these workers in which the plugin's tools work now.",
    ("plugin",),
    roles=_ENDPOINT,
)

METRICS: Final = (
    CALLS,
    CALL_SECONDS,
    HOP_SECONDS,
    REPORTS,
    RUNNING,
    READY,
    BROWSERS,
    CONNECTED,
    RESTARTS,
    DROPPED_REPORTS,
    LATE_MESSAGES,
    TABS_READY,
    RUNNING_MOST,
    MEMORY,
    WAITING,
    WAITING_MOST,
    WORKERS,
    FLEET_BROWSERS,
    FLEET_RUNNING,
    FLEET_MOST,
    PLUGIN_WORKERS,
    PLUGIN_BROWSERS,
    PLUGIN_TABS_READY,
)
