"""Workers that claim their names and numbers."""

from collections.abc import Callable
from typing import cast

import pytest

from opentabs_py.core.fleet.messages import Announcement, encode
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.errors import FleetError
from opentabs_py.fleet.claim import WorkerClaim
from opentabs_py.fleet.identity import Identity
from opentabs_py.fleet.link import NatsLink, Received
from tests.core.fleet.test_pool import worker

pytestmark = pytest.mark.anyio


class SharedLink:
    """A connection of several workers, which delivers everything at once."""

    version = "1"
    subjects = Subjects("test")

    def __init__(self) -> None:
        self._handlers: list[tuple[str, Callable[[Received], None]]] = []

    async def subscribe(
        self, subject: str, handle: Callable[[Received], None]
    ) -> tuple[str, Callable[[Received], None]]:
        self._handlers.append((subject, handle))
        return self._handlers[-1]

    async def unsubscribe(self, subscription: tuple[str, Callable[[Received], None]]) -> None:
        self._handlers.remove(subscription)

    def publish(self, subject: str, data: bytes = b"", _reply: str = "") -> None:
        for listened, handle in [*self._handlers]:
            if subject == listened:
                handle(Received(subject, data, absent=False, reply=""))

    def announce(self, *workers: Announcement) -> None:
        for each in workers:
            self.publish(self.subjects.workers, encode(each))

    async def answer_who(self, *workers: Announcement) -> None:
        """Answer as these workers from now on."""
        await self.subscribe(self.subjects.who, lambda _: self.announce(*workers))


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> SharedLink:
    monkeypatch.setattr("opentabs_py.fleet.claim.CLAIMED_AFTER", 0)
    return SharedLink()


def a_claim(link: SharedLink, name: str, *, browsers: int = 1, started: float = 2.0) -> WorkerClaim:
    identity = Identity(name, started=started)
    return WorkerClaim(cast("NatsLink", link), identity, browsers=browsers)


async def test_a_name_that_is_taken_is_refused(link: SharedLink) -> None:
    await link.answer_who(worker("a"))
    with pytest.raises(FleetError, match="A worker named a is already in the fleet, on h"):
        await a_claim(link, "a").make()


async def test_a_name_is_taken_from_the_claim_to_its_end(link: SharedLink) -> None:
    first, second = a_claim(link, "a"), a_claim(link, "a", started=3.0)
    await first.make()  # and its browsers start
    with pytest.raises(FleetError, match="A worker named a is already in the fleet"):
        await second.make()
    await first.end()
    await a_claim(link, "a", started=4.0).make()  # nobody objects any more


async def test_a_number_that_is_taken_is_not_chosen(
    link: SharedLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opentabs_py.fleet.claim.LARGEST_NUMBER", 7)  # so 1, 2 or 3, of three each
    await link.answer_who(worker("a", 1), worker("b", 2))
    identity = await a_claim(link, "c", browsers=3).make()
    assert identity.number == 3


@pytest.mark.parametrize(
    ("name", "why"), [("a", "A worker named a"), ("b", "The worker b on h .* the same number")]
)
async def test_one_that_had_it_before_and_was_not_heard_is_heard_before_the_worker_serves(
    name: str, why: str, link: SharedLink
) -> None:
    claim = a_claim(link, "a")
    identity = await claim.make()
    link.announce(worker(name, identity.number))
    with pytest.raises(FleetError, match=why):
        await claim.end()


async def test_a_worker_of_another_version_does_not_count(link: SharedLink) -> None:
    claim = a_claim(link, "a")
    await claim.make()
    link.publish(link.subjects.workers, b"of another version")
    await claim.end()
