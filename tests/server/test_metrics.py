"""Exported metrics of calls and of a process, and its health checks."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from opentabs_py.core import failures, metrics
from opentabs_py.core.metrics import Role
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.readiness import Readiness
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import CallError, ErrorDetail, ToolFailedError
from opentabs_py.server.metrics import CallMetrics, Exporter, Values
from opentabs_py.server.tools.local_tab_tools import LocalTabsList
from tests.fakes import FakeBridge, a_manifest, a_tool, tool_calls_of
from tests.scraped import Scraped
from tests.tracing.examples import ALL, SUCCEEDED, TIMED_OUT

pytestmark = pytest.mark.anyio


class Process:
    """A process whose state the test controls."""

    role: Role = "server"

    def __init__(self) -> None:
        self.now = Readiness(ready=True, why="it was told so")
        self.values: Values = {}

    def readiness(self) -> Readiness:
        return self.now

    def read(self) -> Values:
        return self.values


class Exported:
    """A registry whose calls are counted."""

    def __init__(
        self, *, error: Exception | None = None, reports: Sequence[ProgressReport] = ()
    ) -> None:
        self.bridge = FakeBridge(value={}, error=error, reports=reports)
        built_in = [LocalTabsList(self.bridge.pages)]
        self.tool_calls = tool_calls_of(self.bridge.pages, built_in=built_in)
        self.tool_calls.registry.set_plugins([a_manifest(a_tool("send"))])
        self.exporter = Exporter()
        self.process = Process()
        self.exporter.attach(self.tool_calls, self.process)

    def scrape(self) -> Scraped:
        return Scraped(self.exporter.text().decode())

    async def calls(self, name: str) -> Scraped:
        with suppress(CallError):
            await self.tool_calls.call(name, {})
        return self.scrape()


SLOW_DOWN = ToolFailedError(ErrorDetail("RATE_LIMITED", "Slow down."))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(None, "succeeded"), (SLOW_DOWN, "failed"), (failures.lost("tab_closed"), "lost")],
)
async def test_a_call_is_counted_by_its_plugin_and_its_outcome(
    error: Exception | None, outcome: str
) -> None:
    exported = Exported(error=error)
    await exported.calls("chat_send")
    scraped = await exported.calls("chat_send")
    counted = [each for each in scraped.samples if each.name == "opentabs_calls_total"]
    assert [(each.labels, each.value) for each in counted] == [
        ({"role": "server", "plugin": "chat", "outcome": outcome}, 2)
    ]
    assert scraped.value("opentabs_call_duration_seconds_count", plugin="chat") == 2


async def test_names_that_no_tool_has_are_counted_together() -> None:
    exported = Exported()
    for number in range(100):
        await exported.calls(f"chat_nothing_{number}")
    text = exported.exporter.text().decode()
    assert "nothing" not in text
    refused = Scraped(text).value("opentabs_calls_total", outcome="refused", plugin="(none)")
    assert refused == 100


async def test_a_call_by_another_name_of_a_tool_is_its_plugins() -> None:
    scraped = await Exported().calls("chat__send")
    assert scraped.labels("opentabs_calls_total", "plugin") == {"chat"}


def test_calls_of_pages_own_tools_are_counted_together_whatever_their_sites() -> None:
    records = [replace(SUCCEEDED, plugin=f"page--shop-{n}-example") for n in range(3)]
    scraped = observed(*records)
    assert scraped.labels("opentabs_calls_total", "plugin") == {"@page"}
    assert scraped.value("opentabs_calls_total", plugin="@page") == 3


async def test_our_own_tools_are_counted_as_ours() -> None:
    scraped = await Exported().calls("tabs_list")
    assert scraped.labels("opentabs_calls_total", "plugin") == {"opentabs"}


async def test_reports_are_counted() -> None:
    exported = Exported(reports=[ProgressReport(number) for number in range(5)])
    await exported.calls("chat_send")
    scraped = await exported.calls("chat_send")
    assert scraped.value("opentabs_progress_reports_total", plugin="chat") == 10


async def test_a_running_call_is_counted_until_it_ends() -> None:
    exported = Exported()
    seen: list[int] = []
    exported.tool_calls.on_other_report = lambda *_: seen.append(len(exported.tool_calls.running))
    exported.bridge._reports = [ProgressReport(0)]
    await exported.calls("chat_send")
    assert seen == [1]
    assert len(exported.tool_calls.running) == 0


def text_of(*records: CallRecord) -> str:
    """Return the exported metrics of some records."""
    exporter = Exporter()
    calls = CallMetrics(exporter._registry, "server", lambda _: None)
    for record in records:
        calls.observe(record)
    return exporter.text().decode()


def observed(*records: CallRecord) -> Scraped:
    return Scraped(text_of(*records))


def test_the_seconds_of_a_call_are_divided_among_its_hops() -> None:
    hops = {
        each.labels["hop"]: round(each.value, 5)
        for each in observed(SUCCEEDED).samples
        if each.name == "opentabs_hop_duration_seconds_sum"
    }
    assert hops == {
        "server": 0.00025,
        "server → service worker": 0.0005,
        "service worker → relay": 0.00025,
        "relay → page": 0.0005,
        "tool": 1.1975,
        "page → relay": 0.00025,
        "relay → service worker": 0.00025,
        "service worker → server": 0.0005,
    }


def test_the_hop_in_which_a_call_ended_has_its_seconds_too() -> None:
    scraped = observed(TIMED_OUT)
    assert scraped.value("opentabs_hop_duration_seconds_sum", hop="tool") == pytest.approx(2.4985)


def test_a_call_that_was_not_sent_to_a_page_has_no_hops() -> None:
    accepted = {"server.accepted": SUCCEEDED.stamps["server.accepted"]}
    scraped = observed(replace(SUCCEEDED, stamps=accepted))
    assert scraped.value("opentabs_calls_total", plugin="demo") == 1
    assert scraped.labels("opentabs_hop_duration_seconds_count", "hop") == set()


def test_a_call_that_ended_before_the_service_worker_had_it_has_the_hop_in_which_it_ended() -> None:
    stamps = dict(list(SUCCEEDED.stamps.items())[:2])
    scraped = observed(replace(TIMED_OUT, stamps=stamps))
    assert "server" in scraped.labels("opentabs_hop_duration_seconds_count", "hop")


def test_durations_from_5_ms_to_5_min_are_distinguished() -> None:
    scraped = observed(*(replace(SUCCEEDED, seconds=each) for each in (0.004, 0.2, 299.0, 301.0)))
    bounds = {
        each.labels["le"]: each.value
        for each in scraped.samples
        if each.name == "opentabs_call_duration_seconds_bucket"
    }
    assert (bounds["0.005"], bounds["0.25"], bounds["300.0"], bounds["+Inf"]) == (1, 2, 3, 4)


def test_calls_however_they_end_have_no_label_that_they_chose() -> None:
    chosen = [replace(each, name="chosen", tool="chosen", url="https://chosen") for each in ALL]
    assert "chosen" not in text_of(*chosen)


async def test_what_a_process_knows_of_itself_is_read_at_each_scrape() -> None:
    exported = Exported()
    exported.process.values = {metrics.RUNNING: 3, metrics.TABS_READY: {"chat": 2, "mail": 0}}
    scraped = exported.scrape()
    assert scraped.value("opentabs_calls_running", role="server") == 3
    assert scraped.value("opentabs_tabs_ready", plugin="chat") == 2
    assert scraped.value("opentabs_tabs_ready", plugin="mail") == 0
    exported.process.values = {metrics.RESTARTS: 1}
    scraped = exported.scrape()
    assert scraped.value("opentabs_calls_running") is None
    assert scraped.value("opentabs_browser_restarts_total", role="server") == 1
    types = {family.name: family.type for family in scraped.families}
    assert (types["opentabs_browser_restarts"], types["opentabs_ready"]) == ("counter", "gauge")


def test_two_sessions_of_a_process_count_apart() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    CallMetrics(first, "server", lambda _: None).observe(SUCCEEDED)
    CallMetrics(second, "server", lambda _: None)
    counted = [each.get_sample_value("opentabs_calls_total", _OF_DEMO) for each in (first, second)]
    assert counted == [1, None]


_OF_DEMO = {"role": "server", "plugin": "demo", "outcome": "succeeded"}


# --- over HTTP ---


def test_metrics_are_in_the_format_that_every_prometheus_reads() -> None:
    exported = Exported()
    with TestClient(exported.exporter.app()) as client:
        answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    scraped = Scraped(answer.text)
    assert scraped.value("opentabs_ready") == 1
    assert scraped.value("process_resident_memory_bytes") is not None
    assert scraped.value("python_info") == 1
    assert scraped.value("python_gc_collections_total", generation="0") is not None


def test_a_process_that_is_starting_is_alive_and_not_ready() -> None:
    with TestClient(Exporter().app()) as client:
        assert client.get("/healthz").status_code == 200
        ready = client.get("/readyz")
        assert client.get("/metrics").status_code == 200
    assert (ready.status_code, ready.text) == (503, "not ready: it is starting\n")


def test_readiness_is_that_of_the_process_and_says_why_in_one_line() -> None:
    exported = Exported()
    with TestClient(exported.exporter.app()) as client:
        ready = client.get("/readyz")
        exported.process.now = Readiness(ready=False, why="it was told not to")
        not_ready = client.get("/readyz")
    assert (ready.status_code, ready.text) == (200, "ready: it was told so\n")
    assert (not_ready.status_code, not_ready.text) == (503, "not ready: it was told not to\n")
    assert exported.scrape().value("opentabs_ready") == 0


def test_any_name_of_the_host_is_answered() -> None:
    with TestClient(Exporter().app()) as client:
        answer = client.get("/healthz", headers={"host": "worker-3.fleet.example:9464"})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/", "/mcp", "/status", "/ws"])
def test_nothing_but_numbers_and_health_is_served(path: str) -> None:
    with TestClient(Exporter().app()) as client:
        assert client.get(path).status_code == 404
        assert client.post(path).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/", 404, "There is nothing at /. See /metrics, /healthz and /readyz.\n"),
        ("POST", "/readyz", 405, "/readyz does not serve POST.\n"),
    ],
)
def test_a_request_that_is_not_served_is_answered_with_a_line(
    method: str, path: str, status: int, said: str
) -> None:
    with TestClient(Exporter().app()) as client:
        answer = client.request(method, path)
    assert (answer.status_code, answer.text) == (status, said)
