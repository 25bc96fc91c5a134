"""Points where a test replaces a part of the chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opentabs_py.calling.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import BrowserContext

    from opentabs_py.bridge.connection import Socket
    from opentabs_py.calling.clock import Clock


@dataclass(frozen=True, slots=True)
class Seams:
    """What a session uses instead of the real parts.

    Attributes:
        clock: The clock of the calls' timers.
        relay_script: Runs in the relay's world, where it can plant faults.
        wrap_socket: Called with each socket of the extension; returns the one to use instead.
        drive: Return Playwright's context of the browser, if its launcher drives it elsewhere.
    """

    clock: Clock = field(default_factory=SystemClock)
    relay_script: bytes = b""
    wrap_socket: Callable[[Socket], Socket] = lambda socket: socket
    drive: Callable[[], Awaitable[BrowserContext]] | None = None
