"""Where the test kit and a fleet's worker take part in a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opentabs_py.calling.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import BrowserContext

    from opentabs_py.bridge.connection import Socket
    from opentabs_py.browser.launch import Launcher
    from opentabs_py.calling.clock import Clock


@dataclass(frozen=True, slots=True)
class Seams:
    """What a session uses instead of its own parts, or besides them.

    Attributes:
        clock: The clock of the calls' timers.
        relay_script: Runs in the relay's world, where it can plant faults.
        wrap_socket: Called with each socket of the extension; returns the one to use instead.
        launch: Launches the browser in another way.
        drive: Return Playwright's context of the browser, if `launch` drives it elsewhere.
        first_number: The number of the first browser, with which those of its tabs begin.
        stream_prefix: What the ids of streams begin with.
    """

    clock: Clock = field(default_factory=SystemClock)
    relay_script: bytes = b""
    wrap_socket: Callable[[Socket], Socket] = lambda socket: socket
    launch: Launcher | None = None
    drive: Callable[[], Awaitable[BrowserContext]] | None = None
    first_number: int = 0
    stream_prefix: str = ""
