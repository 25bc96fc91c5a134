"""Assign the workers of a fleet to the calls of an endpoint, which wait while all are full."""

import asyncio
from typing import Final

import anyio

from opentabs_py.core.fleet.messages import Announcement
from opentabs_py.core.fleet.pool import Pool, Wanted
from opentabs_py.core.fleet.queue import CallQueue, Waiting
from opentabs_py.core.fleet.quotas import Quotas
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import ChainError
from opentabs_py.fleet.queued_call import QueuedCall

SAY_PLACE_EVERY: Final = 1.0  # s


class Assignments:
    """Assigns workers to calls.

    Args:
        pool: The workers that may be used.
        quotas: How many calls the endpoint makes.
    """

    def __init__(self, pool: Pool, quotas: Quotas) -> None:
        self._pool = pool
        self._queue: CallQueue[Announcement | ChainError] = CallQueue(quotas)
        self._found: dict[Waiting, asyncio.Future[Announcement]] = {}

    @property
    def waiting(self) -> int:
        """How many calls wait for a worker."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many calls have a worker."""
        return self._queue.running

    def add(self, client: SessionKey, wanted: Wanted) -> Waiting:
        """Add a call, which then has to `wait`."""
        return self._queue.add(client, wanted)

    async def wait(self, waiting: Waiting, queued: QueuedCall, until: float) -> Announcement:
        """Return the worker of a call; the call has it until `end` or `put_back`.

        Args:
            waiting: The call.
            queued: Reports its place in the queue.
            until: When it waits no longer.

        Raises:
            ChainError: No worker can run it, or it may not wait or has waited too long.
        """
        found: asyncio.Future[Announcement] = asyncio.get_running_loop().create_future()
        self._found[waiting] = found
        try:
            self.assign()
            if not found.done():
                self._queue.check(waiting)
                await self._wait(waiting, queued, found, until)
        except BaseException:  # cancelled or refused
            if not found.done():
                self._queue.discard(waiting)
            elif found.exception() is None:
                self.end(waiting, found.result(), None)
            raise
        finally:
            del self._found[waiting]
        return found.result()

    async def _wait(
        self,
        waiting: Waiting,
        queued: QueuedCall,
        found: asyncio.Future[Announcement],
        until: float,
    ) -> None:
        with anyio.move_on_after(until - anyio.current_time()):
            while not found.done():
                queued.say(self._queue.ahead(waiting), self._queue.running_at_quota(waiting))
                await asyncio.wait([found], timeout=SAY_PLACE_EVERY)
        if not found.done():
            raise self._queue.busy(waiting)

    def put_back(self, waiting: Waiting, worker: Announcement, until: float) -> None:
        """Let a call wait again that its worker did not take, because it is full.

        Raises:
            ChainError: It has waited too long.
        """
        self._pool.end(worker)
        self._pool.note_busy(worker)
        self._queue.put_back(waiting)
        if anyio.current_time() >= until:
            busy = self._queue.busy(waiting)
            self._queue.discard(waiting)
            raise busy

    def end(self, waiting: Waiting, worker: Announcement, seconds: float | None) -> None:
        """Record that a call has ended, and how long it ran, if it did; assign its worker again."""
        self._pool.end(worker)
        self._queue.end(waiting, seconds)
        self.assign()

    def assign(self) -> None:
        """Assign free workers to the waiting calls, in turn."""
        if not self._found:
            return
        for waiting, worker in self._queue.take(self._pool.choose):
            found = self._found[waiting]
            if isinstance(worker, ChainError):
                self._queue.end(waiting, None)
                found.set_exception(worker)
            else:
                self._pool.begin(worker)
                found.set_result(worker)
