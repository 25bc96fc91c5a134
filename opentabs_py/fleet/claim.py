"""A worker's name and numbers, which no other worker of the fleet has."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import anyio

from opentabs_py.core.fleet.claims import conflict
from opentabs_py.core.fleet.messages import Announcement, encode, read_announcement
from opentabs_py.errors import FleetError, ProtocolError
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink, Received

CLAIMED_AFTER: Final = 0.4  # s in which no other worker objects
# With more, the numbers of tabs could not be represented exactly in JavaScript.
LARGEST_NUMBER: Final = 900_000


async def claim(
    link: NatsLink, name: str, *, labels: Mapping[str, str], max_calls: int, browsers: int
) -> Identity:
    """Find a number for a worker's browsers, and make sure that its name is its own.

    Args:
        link: The connection.
        name: Its name.
        labels: Its labels.
        max_calls: How many calls may run in it at once.
        browsers: How many browsers it has.

    Raises:
        FleetError: Another worker has the name.
    """
    others: dict[str, Announcement] = {}
    identity = Identity(name, link.version, 0, labels, max_calls)

    def handle(message: Received) -> None:
        try:
            other = read_announcement(message.data, opentabs=link.version)
        except ProtocolError:
            return  # of another version, whose tabs no endpoint mixes with ours
        if other.instance != identity.instance:
            others[other.instance] = other

    subscription = await link.subscribe(link.subjects.workers, handle)
    who = await link.subscribe(link.subjects.who, lambda _: announce())

    def announce() -> None:
        link.publish(link.subjects.workers, encode(starting(identity)))

    def starting(identity: Identity) -> Announcement:
        return identity.announce("starting", [str(index) for index in range(browsers)])

    try:
        link.publish(link.subjects.who)
        await anyio.sleep(CLAIMED_AFTER)
        while True:
            number = random.randrange(1, LARGEST_NUMBER - browsers)  # noqa: S311 (no secret)
            identity = replace(identity, number=number)
            if conflict(starting(identity), [*others.values()]) is None:
                announce()
                await anyio.sleep(CLAIMED_AFTER)
            other = conflict(starting(identity), [*others.values()])
            if other is None:
                return identity
            if other.name == name:
                raise FleetError(
                    f"A worker named {name} is already in the fleet, on {other.host} "
                    f"(pid {other.pid}). Choose another --name."
                )
    finally:
        await link.unsubscribe(subscription)
        await link.unsubscribe(who)
