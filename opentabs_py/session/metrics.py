"""Export the metrics of a session, and whether it can take calls."""

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from opentabs_py.core import metrics, readiness
from opentabs_py.core.hosts import url_host
from opentabs_py.core.metrics import Role
from opentabs_py.core.readiness import Readiness
from opentabs_py.core.tabs.selection import ready_by_plugin
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.server.metrics import Exporter, MeasuredProcess, Values
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.session import OpenTabs

if TYPE_CHECKING:  # they need nats-py
    from opentabs_py.fleet.endpoint import Fleet
    from opentabs_py.fleet.worker import FleetWorker

logger = logging.getLogger(__name__)


class AttachMetrics(Protocol):
    """Attaches to a session."""

    def __call__(self, session: OpenTabs, worker: "FleetWorker | None" = None, /) -> None:
        """Export the metrics of a session, once it has started.

        Args:
            session: The session.
            worker: What makes the fleet's calls with it, if it is a worker's.
        """
        ...


@asynccontextmanager
async def export_metrics(host: str, port: int) -> AsyncGenerator[AttachMetrics]:
    """Serve metrics and health checks while the context is open.

    Args:
        host: The address to listen on; any will do.
        port: The port; 0 picks a free one.

    Yields:
        What attaches to the session. Until that is called, the process says that it is starting.

    Raises:
        ConfigError: The address is not available.
    """
    exporter = Exporter()

    def attach(session: OpenTabs, worker: "FleetWorker | None" = None) -> None:
        exporter.attach(session.internals.tool_calls, _source(session, worker))

    with bind(host, port, option="--metrics") as listener:
        async with serve_http(exporter.app(), listener):
            port = listener.getsockname()[1]
            logger.info("Metrics at http://%s:%d/metrics", url_host(host), port)
            yield attach


def _source(session: OpenTabs, worker: "FleetWorker | None") -> MeasuredProcess:
    if worker is not None:
        return WorkerSource(session, worker)
    return EndpointSource(session.internals.fleet) if session.is_endpoint else ServerSource(session)


class ServerSource:
    """What a server knows of itself.

    Args:
        session: Its session.
    """

    role: Role = "server"

    def __init__(self, session: OpenTabs) -> None:
        self._session = session

    def readiness(self) -> Readiness:
        """Return whether it can take calls now."""
        connected = self._session.internals.pages.connected
        return readiness.of_server(needs_browser=self._session.needs_browser, connected=connected)

    def read(self) -> Values:
        """Return what it has and does now."""
        return {
            metrics.RUNNING: len(self._session.internals.tool_calls.running),
            **_read_browsers(self._session),
        }


class EndpointSource:
    """What an endpoint of a fleet knows of itself, and of its workers.

    Args:
        fleet: Its workers.
    """

    role: Role = "endpoint"

    def __init__(self, fleet: "Fleet") -> None:
        self._fleet = fleet

    def readiness(self) -> Readiness:
        """Return whether it can take calls now."""
        return readiness.of_endpoint(
            linked=self._fleet.link.connected, workers=len(self._fleet.directory.usable)
        )

    def read(self) -> Values:
        """Return what it does now, and what its workers have."""
        fleet = self._fleet
        workers = fleet.directory.usable
        served, browsers, ready = Counter[str](), Counter[str](), Counter[str]()
        for worker in workers:
            served.update(worker.served.keys())
            browsers.update(dict.fromkeys(worker.served, len(worker.browsers)))
            ready.update(worker.total_ready)
        return {
            metrics.RUNNING: fleet.running,
            metrics.WAITING: fleet.waiting,
            metrics.WAITING_MOST: fleet.quotas.queue,
            metrics.WORKERS: len(workers),
            metrics.FLEET_BROWSERS: sum(len(each.browsers) for each in workers),
            metrics.FLEET_RUNNING: sum(each.total_running for each in workers),
            metrics.FLEET_MOST: sum(each.max_calls for each in workers),
            metrics.PLUGIN_WORKERS: served,
            metrics.PLUGIN_BROWSERS: browsers,
            metrics.PLUGIN_TABS_READY: ready,
        }


class WorkerSource:
    """What a worker of a fleet knows of itself.

    Args:
        session: Its session.
        worker: Makes the fleet's calls.
    """

    role: Role = "worker"

    def __init__(self, session: OpenTabs, worker: "FleetWorker") -> None:
        self._session = session
        self._worker = worker

    def readiness(self) -> Readiness:
        """Return whether it can take calls now."""
        connected = {each.name: each.bridge.connected for each in _browsers(self._session)}
        return readiness.of_worker(
            linked=self._worker.connected, state=self._worker.state, browsers=connected
        )

    def read(self) -> Values:
        """Return what it has and does now."""
        return {
            metrics.RUNNING: self._worker.running,
            metrics.RUNNING_MOST: self._worker.identity.max_calls,
            metrics.MEMORY: self._worker.memory,
            **_read_browsers(self._session),
        }


def _browsers(session: OpenTabs) -> Iterable[SessionBrowser]:
    return session.internals.browsers if session.needs_browser else ()


def _read_browsers(session: OpenTabs) -> Values:
    browsers = [*_browsers(session)]
    calls = [each.bridge.calls.dispatch for each in browsers]
    none_ready = dict.fromkeys(session.internals.pages.plugins, 0)
    return {
        metrics.BROWSERS: len(browsers),
        metrics.CONNECTED: sum(each.bridge.connected for each in browsers),
        metrics.RESTARTS: sum(each.restarts for each in browsers),
        metrics.DROPPED_REPORTS: sum(each.dropped_reports for each in calls),
        metrics.LATE_MESSAGES: sum(each.late_messages for each in calls),
        metrics.TABS_READY: none_ready | ready_by_plugin(session.internals.pages.tabs.documents),
    }
