"""Notice that this process was suspended."""

import anyio

from opentabs_py.core.fleet.liveness import SUSPENDED_FOR
from opentabs_py.fleet.link import NatsLink


async def sleep_until(deadline: float, link: NatsLink) -> float:
    """Sleep, and return the time; if this process was suspended meanwhile, its link is notified.

    The other processes may have been suspended with it, so what they say may be as late as after
    an interruption of the connection.

    Args:
        deadline: Until when, in seconds of the event loop's clock.
        link: The connection to NATS.
    """
    await anyio.sleep_until(deadline)
    now = anyio.current_time()
    if now > deadline + SUSPENDED_FOR and link.connected:
        link.relinked.notify()
    return now
