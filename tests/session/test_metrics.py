"""What a session and a fleet's endpoint export of themselves."""

from types import SimpleNamespace
from typing import Any

from opentabs_py.core import metrics
from opentabs_py.core.fleet.messages import Announcement, ServedOwner
from opentabs_py.core.protocol import DocumentState
from opentabs_py.core.readiness import Readiness
from opentabs_py.session.metrics import EndpointSource, ServerSource, WorkerSource
from tests.fakes import a_document, a_manifest


def a_worker(name: str, browsers: list[str], running: dict[str, int], **served: int | None) -> Any:
    return Announcement(
        version=1,
        opentabs="1",
        name=name,
        instance="a" * 16,
        host="host",
        pid=1,
        started=1.0,
        state="serving",
        number=0,
        browsers=browsers,
        labels={},
        max_calls=4,
        running=running,
        served={owner: ServedOwner(digest="d", ready=ready) for owner, ready in served.items()},
    )


def test_an_endpoint_exports_the_sums_over_its_workers() -> None:
    workers = [
        a_worker("one", ["a", "b"], {"e" * 16: 1}, chat=2, python=None),
        a_worker("two", ["c"], {"e" * 16: 2, "f" * 16: 3}, chat=1),
    ]
    fleet: Any = SimpleNamespace(
        directory=SimpleNamespace(usable=workers),
        link=SimpleNamespace(connected=True),
        quotas=SimpleNamespace(queue=100),
        running=3,
        waiting=5,
    )
    source = EndpointSource(fleet)
    assert source.readiness() == Readiness(ready=True, why="workers: 2")
    assert source.read() == {
        metrics.RUNNING: 3,
        metrics.WAITING: 5,
        metrics.WAITING_MOST: 100,
        metrics.WORKERS: 2,
        metrics.FLEET_BROWSERS: 3,
        metrics.FLEET_RUNNING: 6,
        metrics.FLEET_MOST: 8,
        metrics.PLUGIN_WORKERS: {"chat": 2, "python": 1},
        metrics.PLUGIN_BROWSERS: {"chat": 3, "python": 2},
        metrics.PLUGIN_TABS_READY: {"chat": 3},
    }


def a_browser(name: str, *, connected: bool, restarts: int, dropped: int, late: int) -> Any:
    dispatch = SimpleNamespace(dropped_reports=dropped, late_messages=late)
    bridge = SimpleNamespace(connected=connected, calls=SimpleNamespace(dispatch=dispatch))
    return SimpleNamespace(name=name, bridge=bridge, restarts=restarts)


def a_session(*, needs_browser: bool = True) -> Any:
    browsers = [
        a_browser("one", connected=True, restarts=1, dropped=2, late=3),
        a_browser("two", connected=False, restarts=10, dropped=20, late=30),
    ]
    documents = [DocumentState.model_validate(a_document())]
    pages = SimpleNamespace(
        plugins={"chat": a_manifest(), "mail": a_manifest()},
        tabs=SimpleNamespace(documents=documents),
        connected=True,
    )
    tool_calls = SimpleNamespace(running=["a call"] * 7)
    return SimpleNamespace(
        internals=SimpleNamespace(browsers=browsers, pages=pages, tool_calls=tool_calls),
        needs_browser=needs_browser,
    )


def test_a_server_exports_the_sums_over_its_browsers() -> None:
    source = ServerSource(a_session())
    assert source.readiness() == Readiness(ready=True, why="an extension is connected")
    assert source.read() == {
        metrics.RUNNING: 7,
        metrics.BROWSERS: 2,
        metrics.CONNECTED: 1,
        metrics.RESTARTS: 11,
        metrics.DROPPED_REPORTS: 22,
        metrics.LATE_MESSAGES: 33,
        metrics.TABS_READY: {"chat": 1, "mail": 0},
    }


def test_a_session_that_needs_no_browser_exports_none() -> None:
    source = ServerSource(a_session(needs_browser=False))
    assert source.readiness().why == "its tools need no browser"
    values = source.read()
    assert (values[metrics.BROWSERS], values[metrics.RESTARTS]) == (0, 0)


def test_a_worker_names_the_browser_that_is_not_connected() -> None:
    worker: Any = SimpleNamespace(
        connected=True,
        state="serving",
        running=2,
        identity=SimpleNamespace(max_calls=8),
        memory=1_000_000,
    )
    source = WorkerSource(a_session(), worker)
    assert source.readiness() == Readiness(ready=False, why="not connected: two")
    values = source.read()
    read = [values[each] for each in (metrics.RUNNING, metrics.RUNNING_MOST, metrics.MEMORY)]
    assert read == [2, 8, 1_000_000]
    assert values[metrics.BROWSERS] == 2
