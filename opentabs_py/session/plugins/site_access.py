"""Grant the running extension access to new sites; it reloads to get it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.stage import StagedExtension

# s; longer than a reload of the extension may take, and a third of what clients wait for a call
HELD_FOR: Final = 20.0


@asynccontextmanager
async def grant_access(
    sites: Sequence[str],
    staged: Sequence[StagedExtension],
    bridges: Sequence[Bridge],
    *,
    longest_call: float,
) -> AsyncGenerator[bool]:
    """Grant the extensions access to sites; if one has to reload, wait for running calls first.

    Args:
        sites: Match patterns of all sites that they need access to.
        staged: The extensions that the browsers load.
        bridges: The links to them.
        longest_call: How long to wait for running calls to end, in seconds.

    Yields:
        Whether they reload when they next receive the list of plugins; no call begins before
        the end of the context.
    """
    lacking = [each for each in staged if each.lacks(sites)]
    try:
        if lacking:
            await _drain(bridges, longest_call)
        for each in lacking:
            each.allow(sites)
        yield bool(lacking)
    finally:
        if lacking:
            for bridge in bridges:
                bridge.release_calls()


async def _drain(bridges: Sequence[Bridge], longest_call: float) -> None:
    """Wait until no call runs in any browser, but not for ever; hold back new ones then."""
    _hold_calls(bridges)
    with anyio.move_on_after(longest_call):
        while any(bridge.calls.running for bridge in bridges):
            for bridge in bridges:
                await bridge.calls.wait_idle()
    _hold_calls(bridges)


def _hold_calls(bridges: Sequence[Bridge]) -> None:
    for bridge in bridges:
        bridge.hold_calls(HELD_FOR)
