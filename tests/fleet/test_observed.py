"""What commands see of a fleet, with a fake connection."""

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import cast

import anyio
import pytest

from opentabs_py.core.fleet.messages import encode
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.errors import FleetError
from opentabs_py.fleet import observed
from opentabs_py.fleet.link import NatsLink, Received
from opentabs_py.fleet.observed import ObservedFleet
from tests.core.fleet.test_pool import worker
from tests.waiting import PATIENT

pytestmark = pytest.mark.anyio

ANNOUNCERS = 20


class FakeLink:
    """A connection on which only this process publishes.

    Args:
        drains: Whether the workers listen: if not, NATS says so.
    """

    version = "1"
    subjects = Subjects("test")

    def __init__(self, *, drains: bool = True) -> None:
        self._drains = drains
        self.handlers: dict[str, Callable[[Received], None]] = {}

    async def subscribe(self, subject: str, handle: Callable[[Received], None]) -> str:
        self.handlers[subject] = handle
        return subject

    async def unsubscribe(self, subscription: str) -> None:
        del self.handlers[subscription]

    def publish(self, subject: str, data: bytes = b"", reply: str = "") -> None:
        if subject in self.handlers:
            self.handlers[subject](Received(subject, data, absent=False, reply=reply))
        elif subject.endswith(".drain"):
            self.handlers[reply](Received(reply, b"", absent=not self._drains, reply=""))


async def announce(link: FakeLink, number: int, *, restarts: bool) -> None:
    """Announce a busy worker again and again, or a different one each time."""
    for calls in count():
        run = number + ANNOUNCERS * calls if restarts else number
        link.publish(link.subjects.workers, encode(worker(f"w{run}", run, calls=calls)))
        await anyio.sleep(observed.QUIET_FOR / 3)


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_fleet_that_never_stops_announcing_is_still_listed(
    monkeypatch: pytest.MonkeyPatch, *, restarts: bool
) -> None:
    if restarts:  # announcements do not stop before the limit
        monkeypatch.setattr(observed, "KNOWN_WITHIN", 2 * observed.QUIET_FOR)
    link = FakeLink()
    fleet = ObservedFleet(cast("NatsLink", link))
    async with anyio.create_task_group() as tasks:
        for number in range(ANNOUNCERS):
            tasks.start_soon(partial(announce, link, number, restarts=restarts))
        with anyio.fail_after(PATIENT):
            await fleet.start()
        tasks.cancel_scope.cancel()
    assert len(fleet.directory.all) >= ANNOUNCERS


async def test_a_worker_that_is_not_there_is_not_drained_and_the_others_are_named() -> None:
    fleet = ObservedFleet(cast("NatsLink", FakeLink()))
    with pytest.raises(FleetError, match=r"^No worker is named 'x'\. Workers: none\.$"):
        await fleet.drain("x")
    for name, number in (("b", 20), ("a", 10)):
        fleet.directory.handle(encode(worker(name, number)), 0)
    with pytest.raises(FleetError, match=r"^No worker is named 'x'\. Workers: a, b\.$"):
        await fleet.drain("x")


async def test_the_answer_of_a_draining_worker_is_awaited_only_until_it_arrives() -> None:
    link = FakeLink()
    fleet = ObservedFleet(cast("NatsLink", link))
    fleet.directory.handle(encode(worker("a")), 0)
    assert (await fleet.drain("a")).name == "a"
    assert not link.handlers


async def test_a_worker_that_does_not_listen_is_not_drained() -> None:
    link = FakeLink(drains=False)
    fleet = ObservedFleet(cast("NatsLink", link))
    fleet.directory.handle(encode(worker("a")), 0)
    with pytest.raises(FleetError, match=r"^The worker a does not answer\. Its pid on h: 1$"):
        await fleet.drain("a")
    assert not link.handlers
