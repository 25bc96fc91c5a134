"""A read-only view of a fleet."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from opentabs_py.calling.changes import Changes
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.core.fleet.liveness import SILENT_FOR
from opentabs_py.core.fleet.messages import Announcement, EndpointAnnouncement, read_endpoint
from opentabs_py.errors import FleetError, ProtocolError
from opentabs_py.fleet.directory import Directory
from opentabs_py.fleet.link import NatsLink, Received, nats_link

ANSWERS_WITHIN: Final = 1.5  # s; in which the first worker or endpoint says something
QUIET_FOR: Final = 0.3  # s in which no other worker or endpoint is heard, after which all are known
KNOWN_WITHIN: Final = 3.0  # s; in a large fleet, others may come and go all the time
DRAINS_WITHIN: Final = 2.0  # s; in which a worker says that it will


class ObservedFleet:
    """The workers of a fleet, always current.

    Args:
        link: The connection.

    Attributes:
        directory: The workers.
        endpoints: The endpoints, by their id.
    """

    def __init__(self, link: NatsLink) -> None:
        self.directory = Directory({}, lambda _: None)
        self.endpoints: dict[str, EndpointAnnouncement] = {}
        self._heard: dict[str, float] = {}  # of endpoints
        self._link = link
        self._found = Changes()  # one that was not known before

    async def start(self) -> None:
        """Find the workers; wait no longer than a few seconds for them."""
        link = self._link
        await link.subscribe(link.subjects.workers, self._handle)
        await link.subscribe(link.subjects.endpoints, self._handle_endpoint)
        link.publish(link.subjects.who)
        with anyio.move_on_after(ANSWERS_WITHIN):
            while not (self.directory.all or self.endpoints):
                await self._found.next().wait()
        with anyio.move_on_after(KNOWN_WITHIN):
            await self._found.wait_quiet(QUIET_FOR)

    def remove_silent(self) -> None:
        """Remove those that have not announced themselves for too long."""
        now = anyio.current_time()
        self.directory.remove_silent(now)
        for endpoint in [each for each, at in self._heard.items() if now > at + SILENT_FOR]:
            del self._heard[endpoint], self.endpoints[endpoint]

    async def drain(self, name: str) -> Announcement:
        """Ask a worker to end what runs in it, and to stop.

        Raises:
            FleetError: There is no such worker, or it does not answer, or does not listen.
        """
        found = next((each for each in self.directory.all if each.name == name), None)
        if found is None:
            names = ", ".join(sorted(each.name for each in self.directory.all))
            raise FleetError(f"No worker is named {name!r}. Workers: {names or 'none'}.")
        answers: list[Received] = []
        answered = anyio.Event()

        def handle(message: Received) -> None:
            answers.append(message)
            answered.set()

        reply = f"{self._link.subjects.endpoint(secrets.token_hex(8))}.drain"
        subject = f"{self._link.subjects.worker(name, found.instance)}.drain"
        subscription = await self._link.subscribe(reply, handle)
        try:
            self._link.publish(subject, reply=reply)
            with anyio.move_on_after(DRAINS_WITHIN):
                await answered.wait()
        finally:
            await self._link.unsubscribe(subscription)
        if answers and not answers[0].absent:
            return found
        raise FleetError(f"The worker {name} does not answer. Its pid on {found.host}: {found.pid}")

    def _handle(self, message: Received) -> None:
        known = len(self.directory.all)
        self.directory.handle(message.data, anyio.current_time())
        if len(self.directory.all) > known:
            self._found.notify()

    def _handle_endpoint(self, message: Received) -> None:
        try:
            endpoint = read_endpoint(message.data)
        except ProtocolError:
            return  # of another version
        if endpoint.leaving:
            self.endpoints.pop(endpoint.endpoint, None)
            self._heard.pop(endpoint.endpoint, None)
            return
        is_new = endpoint.endpoint not in self.endpoints
        self.endpoints[endpoint.endpoint] = endpoint
        self._heard[endpoint.endpoint] = anyio.current_time()
        if is_new:
            self._found.notify()


@asynccontextmanager
async def observe_fleet(options: FleetOptions) -> AsyncGenerator[ObservedFleet]:
    """Observe a fleet.

    Args:
        options: How to connect.

    Raises:
        FleetError: NATS cannot be reached, or refuses the connection.
        ConfigError: A file with certificates cannot be used.
    """
    async with nats_link(options) as link:
        fleet = ObservedFleet(link)
        await fleet.start()
        yield fleet
