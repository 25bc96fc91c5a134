"""Calls of an endpoint, in the test's process or in a separate one that can be killed."""

import sys
from collections.abc import Callable

import anyio

from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.settings import load_settings
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

AT_ONCE = 8
CALL_WITHIN = 60.0  # s; a call that has not ended by then is lost
REPEAT_AFTER = 0.02  # s
# The tool did not run, so the caller may retry. Tools are unknown until a worker is known.
REFUSED = {"NO_WORKER", "FLEET_BUSY", "UNKNOWN_TOOL"}


def command(nats: str, fleet: str, prefix: str, calls: int) -> list[str]:
    """Return the command of an endpoint that makes calls and prints how each attempt ended."""
    return [sys.executable, "-m", "e2e.fleet.caller", nats, fleet, prefix, str(calls)]


async def call_all(
    tabs: OpenTabs, prefix: str, calls: int, note: Callable[[str, str], None]
) -> None:
    """Make calls, several at once.

    Args:
        tabs: The endpoint.
        prefix: What their keys begin with. Each attempt of a call has its own key.
        calls: How many.
        note: Called with the key and outcome of each attempt: `value`, or an error code.
    """
    numbers = iter(range(calls))

    async def call_next() -> None:
        for number in numbers:
            with anyio.fail_after(CALL_WITHIN):
                attempt = 0
                while not await call(f"{prefix}-{number}-{attempt}", number):
                    attempt += 1
                    await anyio.sleep(REPEAT_AFTER)

    async def call(key: str, number: int) -> bool:
        arguments = {"key": key, "seconds": number % 7 * 0.03, "reports": number % 3}
        try:
            value = await tabs.call("work", arguments)
        except CallError as error:
            note(key, error.detail.code)
            return error.detail.code not in REFUSED
        note(key, "value" if value == key else repr(value))
        return True

    async with anyio.create_task_group() as tasks:
        for _ in range(AT_ONCE):
            tasks.start_soon(call_next)


async def main(nats: str, fleet: str, prefix: str, calls: int) -> None:
    """Make calls, and print how each attempt ended."""
    async with OpenTabs(nats=FleetOptions(nats, fleet), settings=load_settings(port=0)) as tabs:
        await call_all(tabs, prefix, calls, lambda key, end: print(key, end, flush=True))


if __name__ == "__main__":
    nats_, fleet_, prefix_, calls_ = sys.argv[1:]
    anyio.run(main, nats_, fleet_, prefix_, int(calls_))
