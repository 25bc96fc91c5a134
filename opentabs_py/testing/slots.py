"""The browsers of one test process: those that tests share, and those of one test alone."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from opentabs_py.config.settings import Settings
from opentabs_py.testing.chain import Chain
from opentabs_py.testing.thread import ServerThread

_Key = tuple[tuple[Path, ...], tuple[Any, ...], Settings]


class ChainSlots:
    """The slots of one test process: one for the browser of each person of a test."""

    def __init__(self) -> None:
        self._slots: dict[bool, list[ChainSlot]] = {False: [], True: []}

    @cached_property
    def thread(self) -> ServerThread:
        """The thread that servers run in."""
        return ServerThread()

    def first(self, count: int, *, offline: bool = False) -> "Sequence[ChainSlot]":
        """Return the slots for a test's people; most tests have one person.

        Args:
            count: How many.
            offline: Whether their browsers reach no site.
        """
        slots = self._slots[offline]
        while len(slots) < count:
            slots.append(ChainSlot(self.thread, offline=offline))
        return slots[:count]

    def close_browsers(self) -> None:
        """Close all browsers and their servers."""
        for slot in (*self._slots[False], *self._slots[True]):
            slot.close()

    def close(self) -> None:
        """Stop the thread and everything still running in it."""
        if "thread" in self.__dict__:
            self.thread.close()


class ChainSlot:
    """Starts chains on demand, and keeps the one that tests share.

    Args:
        thread: The thread that servers run in.
        offline: Whether its browsers reach no site.
    """

    def __init__(self, thread: ServerThread, *, offline: bool = False) -> None:
        self._thread = thread
        self._offline = offline
        self._shared: Chain | None = None
        self._key: _Key | None = None
        self._launched_with: object = None
        self._own: Chain | None = None

    def begin(
        self, plugins: Sequence[Path], tools: Sequence[Any], settings: Settings, *, own: bool
    ) -> Chain:
        """Return a chain, which may still be starting.

        Args:
            plugins: Directories of built plugins.
            tools: Tools written in Python.
            settings: The server's settings.
            own: Whether the chain is for one test only.
        """
        if own:
            if settings.port != 0 or settings.profile is not None:
                self._close_shared()  # which may have them
            self._own = self._start(plugins, tools, settings)
            return self._own
        key = (tuple(plugins), tuple(tools), settings)
        if self._shared is None or self._key != key or not self._shared.is_usable:
            self._close_shared()
            self._shared = self._start(plugins, tools, settings)
            self._key, self._launched_with = key, None
        return self._shared

    def _start(self, plugins: Sequence[Path], tools: Sequence[Any], settings: Settings) -> Chain:
        return Chain(
            self._thread,
            plugins=plugins,
            tools=tools,
            settings=settings,
            offline=self._offline,
        )

    def open(
        self,
        chain: Chain,
        browser_type: Any,
        *,
        launch_args: Mapping[str, Any],
        context_args: Mapping[str, Any],
    ) -> Chain:
        """Launch the chain's browser, if it is not running; see `Chain.open`.

        Returns:
            The chain, or a new one if its browser was launched with other arguments.
        """
        launched_with = (launch_args, context_args)
        if chain is self._shared:
            if self._launched_with is not None and self._launched_with != launched_with:
                assert self._key is not None
                key = self._key
                self._close_shared()
                chain = self.begin(*key, own=False)
            elif self._launched_with is not None:
                return chain
            self._launched_with = launched_with
        try:
            chain.open(browser_type, launch_args=launch_args, context_args=context_args)
        except BaseException:
            self.forget(chain)
            raise
        return chain

    def release(self, chain: Chain) -> None:
        """End a test: close its own browser, or keep the shared one."""
        if chain is self._own:
            chain.close()
            self.forget(chain)

    def forget(self, chain: Chain) -> None:
        """Never return this chain again, because it is closed."""
        if chain is self._shared:
            self._shared = self._key = self._launched_with = None
        if chain is self._own:
            self._own = None

    def close(self) -> None:
        """Close the browsers and their servers."""
        self._close_shared()
        if self._own is not None:
            self.release(self._own)

    def _close_shared(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self.forget(self._shared)
