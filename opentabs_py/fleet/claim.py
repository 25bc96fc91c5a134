"""A worker's claim to its name and numbers, which no other worker of the fleet has."""

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import anyio

from opentabs_py.core.fleet.claims import conflict
from opentabs_py.core.fleet.messages import Announcement, encode, read_announcement
from opentabs_py.errors import FleetError, ProtocolError
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink, Received

if TYPE_CHECKING:
    from nats.aio.subscription import Subscription

CLAIMED_AFTER: Final = 0.4  # s in which no other worker objects
# With more, the numbers of tabs could not be represented exactly in JavaScript.
LARGEST_NUMBER: Final = 900_000


class WorkerClaim:
    """Finds numbers for a worker's browsers, and objects to others that claim the same.

    A worker may take a while to start. Until it announces itself, this answers for it.

    Args:
        link: The connection.
        identity: Who the worker is, without its number.
        browsers: How many browsers it has.
    """

    def __init__(self, link: NatsLink, identity: Identity, *, browsers: int) -> None:
        self._link = link
        self._identity = identity
        self._browsers = browsers
        self._others: dict[str, Announcement] = {}
        self._subscriptions: list[Subscription] = []

    async def make(self) -> Identity:
        """Claim the name and numbers, and return the identity with its number.

        Raises:
            FleetError: Another worker has the name.
        """
        link = self._link
        self._subscriptions = [
            await link.subscribe(link.subjects.workers, self._handle),
            await link.subscribe(link.subjects.who, lambda _: self._announce()),
        ]
        link.publish(link.subjects.who)
        await anyio.sleep(CLAIMED_AFTER)
        while True:
            number = random.randrange(1, LARGEST_NUMBER - self._browsers)  # noqa: S311 (no secret)
            self._identity = replace(self._identity, number=number)
            if self._conflict() is None:
                self._announce()
                await anyio.sleep(CLAIMED_AFTER)
            other = self._conflict()
            if other is None:
                return self._identity
            if other.name == self._identity.name:
                await self._unsubscribe()
                raise self._taken(other)

    async def end(self) -> None:
        """Object to no others any more: from now on, the worker does so itself.

        Raises:
            FleetError: Another worker, which was not heard before, has the name or a number.
        """
        await self._unsubscribe()
        other = self._conflict()
        if other is not None:
            raise self._taken(other)

    async def _unsubscribe(self) -> None:
        for subscription in self._subscriptions:
            await self._link.unsubscribe(subscription)

    def _handle(self, message: Received) -> None:
        try:
            other = read_announcement(message.data)
        except ProtocolError:
            return  # of another version, whose tabs no endpoint mixes with ours
        if other.instance != self._identity.instance:
            self._others[other.instance] = other

    def _announce(self) -> None:
        self._link.publish(self._link.subjects.workers, encode(self._announcement))

    def _conflict(self) -> Announcement | None:
        return conflict(self._announcement, self._others.values())

    def _taken(self, other: Announcement) -> FleetError:
        if other.name == self._identity.name:
            return FleetError(
                f"A worker named {other.name} is already in the fleet, on {other.host} "
                f"(pid {other.pid}). Choose another --name."
            )
        return FleetError(
            f"The worker {other.name} on {other.host} (pid {other.pid}) has chosen the same number "
            "for a browser. Start this worker again."
        )

    @property
    def _announcement(self) -> Announcement:
        browsers = [str(index) for index in range(self._browsers)]
        return self._identity.announce("starting", browsers)
