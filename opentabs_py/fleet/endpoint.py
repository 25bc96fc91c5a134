"""An endpoint: calls the tools of a fleet's workers, as if they were its own."""

import logging
import os
import secrets
import socket
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.changes import Changes
from opentabs_py.calling.clock import Clock
from opentabs_py.calling.observer import instant
from opentabs_py.core.codes import FLEET_NOT_CONNECTED
from opentabs_py.core.fleet import failures
from opentabs_py.core.fleet.messages import (
    FLEET_VERSION,
    Announcement,
    Busy,
    CallRequest,
    EndpointAnnouncement,
    Failed,
    LeaveRequest,
    Returned,
    ToEndpoint,
    ToolsRequest,
    encode,
)
from opentabs_py.core.fleet.pool import Pool, Wanted
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.tabs.selection import PluginStatus
from opentabs_py.core.trace.record import read_record
from opentabs_py.errors import ChainError
from opentabs_py.fleet.assignments import Assignments
from opentabs_py.fleet.catalog import Catalog
from opentabs_py.fleet.directory import Directory
from opentabs_py.fleet.holdings import ClientHoldings
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.outcomes import error_of, value_of
from opentabs_py.fleet.queued_call import QueuedCall
from opentabs_py.fleet.requests import NotDeliveredError, WorkerRequests
from opentabs_py.fleet.suspension import sleep_until
from opentabs_py.fleet.trace_context import traceparent

logger = logging.getLogger(__name__)

QUIET_FOR: Final = 0.25  # s without news from workers after the first, when all are known
KNOWN_WITHIN: Final = 3.0  # s
LOOK_EVERY: Final = 1.0  # s; for workers that are silent


class Fleet:
    """The workers of a fleet, for one endpoint.

    Args:
        link: The connection.
        clock: The clock of the calls' records.
        labels: The labels that a worker must have.
        quotas: How many calls it makes.
        longest_message: The longest message to accept, in bytes.

    Attributes:
        link: The connection.
        id: The endpoint's id, in the subjects that it listens to.
        directory: The workers.
        catalog: Their tools.
        holdings: Which tabs clients have opened, with the plugins that they are for, and in which
            workers clients have something else.
        quotas: How many calls it makes.
    """

    def __init__(
        self,
        link: NatsLink,
        clock: Clock,
        *,
        labels: Mapping[str, str],
        quotas: Quotas,
        longest_message: int,
    ) -> None:
        self.id = secrets.token_hex(8)
        self.link = link
        self._clock = clock
        self._labels = labels
        self.quotas = quotas
        self._requests = WorkerRequests(
            link, self.id, longest_message=longest_message, on_lost=self._handle_lost
        )
        self.directory = Directory(labels, self._handle_change, on_conflict=self._handle_conflict)
        self.catalog = Catalog(self._requests, lambda: self.directory.usable)
        self.holdings = ClientHoldings()
        self._pool = Pool(self.id)
        self._assignments = Assignments(self._pool, quotas)
        self._changes = Changes()
        self._offer_changes = Changes()
        self._tasks: TaskGroup

    @property
    def waiting(self) -> int:
        """How many calls wait for a worker."""
        return self._assignments.waiting

    @property
    def running(self) -> int:
        """How many calls of this endpoint run."""
        return self._assignments.running

    def status(self, owner: str) -> PluginStatus:
        """Return the status of a plugin across all workers."""
        served = (each.served.get(owner) for each in self.directory.usable)
        return "ready" if any(each is not None and each.ready != 0 for each in served) else "closed"

    def why_empty(self) -> ChainError | None:
        """Return the error for any tool if no worker can be used; None if one can."""
        if self.directory.usable:
            return None
        options = self.link.options
        return failures.no_workers(options.fleet, options.addresses, self._labels)

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of the workers or their calls."""
        return self._changes.next()

    async def start(self, tasks: TaskGroup) -> None:
        """Find the workers and their tools; wait no longer than a few seconds for them.

        Args:
            tasks: Tasks that run as long as the endpoint.
        """
        self._tasks = tasks
        await self._requests.start()
        await self.link.subscribe(self.link.subjects.workers, self._handle_announcement)
        self.link.relinked.subscribe(self._handle_relinked)
        tasks.start_soon(self._requests.run)
        tasks.start_soon(self.catalog.run)
        tasks.start_soon(self._look_for_silent_workers)
        await self.link.subscribe(self.link.subjects.who, lambda _: self._announce())
        self.link.publish(self.link.subjects.who)
        with anyio.move_on_after(KNOWN_WITHIN):
            is_known = False
            while not is_known:
                await self._offer_changes.wait_quiet(QUIET_FOR)
                is_known = bool(self.directory.all) and self.catalog.is_read

    # --- calls ---

    async def call(self, tool: str, wanted: Wanted, call: ToolCall) -> Any:
        """Call a tool in some worker, and return its value.

        Raises:
            CallError: As in the worker's session, or the worker is gone, or there is none, or
                all are full and too many calls wait.
        """
        client = call.session_key
        waiting = self._assignments.add(client or "", wanted)
        queued = QueuedCall(call)
        until = anyio.current_time() + self.quotas.waits
        while True:
            call.cancellation.comes_in_time = True
            worker = await self._assignments.wait(waiting, queued, until)
            call.cancellation.comes_in_time = False
            began = anyio.current_time()
            if call.recorder is not None:
                call.recorder.record_passed("fleet.sent", instant(self._clock))
            try:
                answer = await self._requests.request(
                    worker,
                    _call_request(tool, call),
                    queued.handle,
                    cancellation=call.cancellation,
                )
            except NotDeliveredError:
                answer = Busy()
            except BaseException:
                self._assignments.end(waiting, worker, anyio.current_time() - began)
                raise
            if not isinstance(answer, Busy):
                self._assignments.end(waiting, worker, anyio.current_time() - began)
                self._record(call, answer)
                if isinstance(answer, (Returned, Failed)):
                    if answer.keeps:
                        self.keep(call.session_key, worker)
                    else:
                        self._disown_all(call.session_key, wanted.own_tabs, worker)
                return _read(answer, worker)
            self._assignments.put_back(waiting, worker, until)  # the call did not run

    def _record(self, call: ToolCall, answer: ToEndpoint) -> None:
        if call.recorder is None or not isinstance(answer, (Returned, Failed)):
            return
        if answer.record is not None:
            with suppress(ValueError):  # a worker of a later version; the call has its value
                call.recorder.merge(read_record(answer.record), instant(self._clock))

    async def call_in(self, worker: Announcement, tool: str, call: ToolCall) -> Any:
        """Call one of our own tools in a certain worker, whatever runs there.

        Raises:
            CallError: As in the worker's session, or the worker is gone.
        """
        try:
            answer = await self._requests.request(
                worker,
                _call_request(tool, call),
                QueuedCall(call).handle,
                cancellation=call.cancellation,
            )
        except NotDeliveredError:
            raise failures.worker_lost(worker.name) from None
        return _read(answer, worker)

    def least_busy(self, workers: Sequence[Announcement]) -> Announcement:
        """Return the one of some workers in which the fewest calls run."""
        return self._pool.least_busy(workers)

    def holder(self, tab_id: int) -> Announcement | None:
        """Return the worker that has a tab."""
        return self._pool.holder(tab_id)

    async def close(self) -> None:
        """Announce that this endpoint is leaving."""
        self._announce(leaving=True)
        await self.link.flush()

    async def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of a client: its workers may close its tabs, and end its streams."""
        for worker in self.holdings.discard(client):
            self._requests.release(worker.instance)
            while not await self._notify_gone(worker, client):
                pass  # until NATS is back; each attempt lasts until the next heartbeat at least

    async def _notify_gone(self, worker: Announcement, client: SessionKey) -> bool:
        """Notify a worker that a client has gone; return False if NATS was away for too long."""
        try:
            await self._requests.request(worker, LeaveRequest(client=client))
        except (ChainError, NotDeliveredError) as error:
            logger.debug("%s was not notified that a client disconnected: %s", worker.name, error)
            is_away = isinstance(error, ChainError) and error.detail.code == FLEET_NOT_CONNECTED
            return not is_away
        return True

    def own(
        self, client: SessionKey | None, tab: int, worker: Announcement, plugins: AbstractSet[str]
    ) -> None:
        """Record that a client opened a tab.

        Args:
            client: The client; None if it has no session.
            tab: The tab.
            worker: Where it is.
            plugins: Those that the tab is for.
        """
        if client is not None and self.holdings.add(client, tab, worker, plugins):
            self._requests.hold(worker)

    def keep(self, client: SessionKey | None, worker: Announcement) -> None:
        """Record that a client may have something in a worker, which ends when the client goes.

        Args:
            client: The client; None if it has no session.
            worker: Where it is.
        """
        if client is not None and self.holdings.add_other(client, worker):
            self._requests.hold(worker)

    def disown(self, client: SessionKey | None, tab: int) -> None:
        """Record that a client's tab is closed."""
        worker = self.holdings.remove(client, tab)
        if worker is not None:
            self._requests.release(worker.instance)

    def _disown_all(
        self, client: SessionKey | None, tabs: Sequence[int], worker: Announcement
    ) -> None:
        """Record that a client has no tabs in a worker any more: the browser may have died."""
        for tab in tabs:
            holder = self.holder(tab)
            if holder is not None and holder.instance == worker.instance:
                self.disown(client, tab)

    # --- workers that come and go ---

    def _handle_announcement(self, message: Received) -> None:
        self.directory.handle(message.data, anyio.current_time())

    def _handle_change(self, instance: str) -> None:
        worker = self.directory.get(instance)
        if worker is None:
            self.holdings.forget(instance)
            self._requests.release_all(instance)
        if worker is not None and self.directory.uses(worker):
            has_changed = self._pool.put(worker)
        else:
            has_changed = self._pool.remove(instance)
        if has_changed:
            self.catalog.refresh()
            self._offer_changes.notify()
        self._assignments.assign()
        self._changes.notify()

    def _handle_conflict(self, worker: Announcement) -> None:
        self._tasks.start_soon(self._look_for, worker)

    async def _look_for(self, worker: Announcement) -> None:
        """Send an empty request to a worker; if it is gone, this is noticed, and it is removed."""
        with suppress(ChainError, NotDeliveredError):
            await self._requests.request(worker, ToolsRequest(owner=worker.name))

    def _handle_lost(self, instance: str) -> None:
        self.directory.remove(instance)

    def _handle_relinked(self) -> None:
        self.directory.handle_relinked(anyio.current_time())
        self.link.publish(self.link.subjects.who)

    def _announce(self, *, leaving: bool = False) -> None:
        announcement = EndpointAnnouncement(
            version=FLEET_VERSION,
            endpoint=self.id,
            host=socket.gethostname() or "localhost",
            pid=os.getpid(),
            running=self.running,
            waiting=self.waiting,
            leaving=leaving,
        )
        self.link.publish(self.link.subjects.endpoints, encode(announcement))

    async def _look_for_silent_workers(self) -> None:
        while True:
            self._announce()
            now = await sleep_until(anyio.current_time() + LOOK_EVERY, self.link)
            if self.link.connected:
                self.directory.remove_silent(now)


def _call_request(tool: str, call: ToolCall) -> CallRequest:
    return CallRequest(
        tool=tool,
        arguments=dict(call.arguments),
        idle=call.limits.idle,
        ceiling=call.limits.ceiling,
        client=call.session_key,
        client_name=call.origin.name,
        record=call.recorder is not None,
        trace=call.recorder is not None and call.recorder.is_traced,
        traceparent=traceparent(),
    )


def _read(answer: ToEndpoint, worker: Announcement) -> Any:
    try:
        match answer:
            case Returned():
                return value_of(answer)
            case Failed():
                error = error_of(answer)
            case _:
                error = failures.invalid_worker_answer(worker.name, f"it sent {answer.type!r}")
    except ValueError as invalid:
        raise failures.invalid_worker_answer(worker.name, str(invalid)) from None
    raise error
