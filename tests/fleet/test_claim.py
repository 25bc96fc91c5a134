"""A worker that claims its name and numbers."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from nats.errors import ConnectionClosedError

from opentabs_py.core.fleet.messages import encode
from opentabs_py.core.fleet.subjects import Subjects
from opentabs_py.errors import FleetError
from opentabs_py.fleet.claim import claim
from opentabs_py.fleet.link import NatsLink, Received
from tests.core.fleet.test_pool import worker

pytestmark = pytest.mark.anyio


class Ended:
    """A subscription of a connection that is closed."""

    async def unsubscribe(self) -> None:
        raise ConnectionClosedError


class ClosedLink:
    """A connection that is closed after one worker has answered."""

    version = "1"
    subjects = Subjects("test")

    def __init__(self) -> None:
        self._handlers: dict[str, Callable[[Received], None]] = {}

    async def subscribe(self, subject: str, handle: Callable[[Received], None]) -> Any:
        self._handlers[subject] = handle
        return Ended()

    async def unsubscribe(self, subscription: Any) -> None:
        await NatsLink.unsubscribe(cast("NatsLink", self), subscription)

    def publish(self, subject: str, _data: bytes = b"", _reply: str = "") -> None:
        if subject == self.subjects.who:
            said = Received(self.subjects.workers, encode(worker("a")), absent=False, reply="")
            self._handlers[self.subjects.workers](said)


async def test_a_name_that_is_taken_is_the_error_also_when_the_connection_is_closed() -> None:
    with pytest.raises(FleetError, match="A worker named a is already in the fleet, on h"):
        await claim(cast("NatsLink", ClosedLink()), "a", labels={}, max_calls=1, browsers=1)
