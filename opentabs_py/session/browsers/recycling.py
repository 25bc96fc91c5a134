"""Replace browsers that have run for long: Chromium needs ever more memory while it shows pages."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import anyio

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.pages import Pages
from opentabs_py.core.text import quantity
from opentabs_py.errors import ConfigError
from opentabs_py.session.browsers.background_launch import BackgroundLaunch

logger = logging.getLogger(__name__)

LOOK_EVERY: Final = 0.5  # s
MEASURE_EVERY: Final = 10.0  # s; it reads every process of the system
BACK_WITHIN: Final = 30.0  # s; a launch usually takes one, on a loaded machine several
_UNITS: Final = {"mb": 10**6, "gb": 10**9}
_LIMIT: Final = re.compile(r"(?P<number>[0-9]+)(?P<unit>[a-z]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RecycleAfter:
    """When a browser is replaced.

    Attributes:
        calls: After so many calls; None for any number.
        memory: At so many bytes of memory; None for any number.
    """

    calls: int | None = None
    memory: int | None = None

    @classmethod
    def read(cls, given: Sequence[str]) -> "RecycleAfter":
        """Return what is given as `1000` (calls), `1500MB` or `2GB`.

        Raises:
            ConfigError: Something else is given.
        """
        calls = memory = None
        for text in given:
            found = _LIMIT.fullmatch(text)
            unit = None if found is None else _UNITS.get(found["unit"].lower())
            if found is None or int(found["number"]) == 0 or (found["unit"] and unit is None):
                raise ConfigError(
                    f"Cannot use --recycle-after {text}. Write a number of calls, such as 1000, or "
                    "an amount of memory, such as 1500MB."
                )
            if unit is None:
                calls = int(found["number"])
            else:
                memory = int(found["number"]) * unit
        return cls(calls, memory)


class ReplaceableBrowser(Protocol):
    """The part of a `SessionBrowser` that is needed to replace it."""

    @property
    def name(self) -> str:
        """Its name, for people and agents."""
        ...

    @property
    def launch(self) -> BackgroundLaunch | None:
        """Its launch; None for one that is running already."""
        ...

    @property
    def bridge(self) -> Bridge:
        """The link to its extension."""
        ...

    async def close(self) -> None:
        """Close it, as its user might."""
        ...

    async def wait_back(self) -> None:
        """Wait until it has been relaunched, and its pages have been opened again."""
        ...


class Recycling:
    """Closes browsers that are due once nothing runs in them; what keeps them open relaunches them.

    A browser in which a client has opened a tab of its own is not replaced before that is closed.
    A tab that was opened without a session may never be, so it delays nothing. A call that no
    other browser can take waits until it is back.

    Args:
        browsers: The browsers.
        pages: Their pages.
        after: When a browser is replaced.
    """

    def __init__(
        self, browsers: Sequence[ReplaceableBrowser], pages: Pages, after: RecycleAfter
    ) -> None:
        self._browsers = browsers
        self._pages = pages
        self._after = after
        self._measure_at = anyio.current_time() + MEASURE_EVERY

    async def run(self) -> None:
        """Replace browsers that are due until cancelled."""
        while True:
            await anyio.sleep(LOOK_EVERY)
            for index in await self._find_due():
                self._pages.avoided.add(index)
            for index in [*self._pages.avoided]:
                if not self._is_used(index):
                    await self._replace(index)

    async def _find_due(self) -> list[int]:
        after = self._after
        due = [
            index
            for index, ended in enumerate(self._pages.ended_calls)
            if after.calls is not None and ended >= after.calls
        ]
        if after.memory is not None and anyio.current_time() >= self._measure_at:
            self._measure_at = anyio.current_time() + MEASURE_EVERY
            for index, browser in enumerate(self._browsers):
                if browser.launch is not None and await browser.launch.memory() >= after.memory:
                    due.append(index)
        return due

    def _is_used(self, index: int) -> bool:
        own = self._pages.tabs.owners.of_sessions()
        return self._pages.running_calls[index] > 0 or any(
            self._pages.index_of(tab) == index for tab in own
        )

    async def _replace(self, index: int) -> None:
        browser = self._browsers[index]
        logger.info(
            "Replacing the browser %s after %s",
            browser.name,
            quantity(self._pages.ended_calls[index], "call"),
        )
        browser.bridge.hold_calls(BACK_WITHIN)
        try:
            await browser.close()
            await browser.wait_back()
        finally:
            browser.bridge.release_calls()
        self._pages.ended_calls[index] = 0
        self._pages.avoided.discard(index)
        await self._warn_of_low_limit(browser)

    async def _warn_of_low_limit(self, browser: ReplaceableBrowser) -> None:
        if self._after.memory is None or browser.launch is None:
            return
        needs = await browser.launch.memory()
        if needs >= self._after.memory:
            logger.warning(
                "The browser %s, just replaced, uses %d MB already, more than --recycle-after "
                "%dMB: it will be replaced without end. Set a higher limit.",
                browser.name,
                needs // 10**6,
                self._after.memory // 10**6,
            )
