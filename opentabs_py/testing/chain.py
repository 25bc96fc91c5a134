"""One running chain: its server in a background thread, its Chromium in the test's thread."""

import logging
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import anyio
from playwright.async_api import BrowserContext as AsyncContext
from playwright.sync_api import BrowserContext, BrowserType, Error

from opentabs_py.browser.debugging import Debugged, debug
from opentabs_py.browser.discovery import find_endpoint
from opentabs_py.browser.launch import Planned
from opentabs_py.browser.launch_plan import LaunchPlan
from opentabs_py.browser.process import end_browser, end_browser_blocking
from opentabs_py.config.settings import Settings
from opentabs_py.core import failures
from opentabs_py.errors import BrowserError
from opentabs_py.session.browsers.browser import CONNECT_WITHIN
from opentabs_py.session.seams import Seams
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.clock import StoppableClock
from opentabs_py.testing.faults.injector import FaultInjector, relay_faults
from opentabs_py.testing.isolation import Isolation
from opentabs_py.testing.recordings.refusing_proxy import RefusingProxy
from opentabs_py.testing.recordings.replays import Sockets
from opentabs_py.testing.thread import ServerThread

logger = logging.getLogger(__name__)

START_WITHIN = CONNECT_WITHIN + 10  # s; reading plugins and importing the MCP SDK take one second
BACK_WITHIN = 3.0  # s; a dead service worker is back after 0.2 s, or 1.7 s at worst
# s; a tenth of a second is typical of each
CLEAN_WITHIN = 10.0
STOP_WITHIN = 10.0
# The server's thread drives the browser through it; the test's Playwright is in another thread.
_DEBUGGED = "--remote-debugging-port=0"


class Chain:
    """A session and its browser. It starts when it is created; `open` waits for it.

    Attributes:
        session: The server side; it lives in the background thread.
        isolation: Keeps tests from affecting each other.
        clock: Drives the timers of its calls.
        sockets: Answers WebSockets, if the browser reaches no site.
    """

    session: OpenTabs
    isolation: Isolation

    def __init__(
        self,
        thread: ServerThread,
        *,
        plugins: Sequence[Path],
        tools: Sequence[Any],
        settings: Settings,
        offline: bool = False,
    ) -> None:
        self._offline_proxy = RefusingProxy() if offline else None
        self.sockets: Sockets | None = None
        self.clock = StoppableClock()
        self._thread = thread
        self._plugins = plugins
        self._tools = tools
        self._settings = settings
        self.faults = FaultInjector(thread)
        self._plan: Future[LaunchPlan] = Future()
        self._started: Future[OpenTabs] = Future()
        self._launched, self._stop = thread.do(lambda: (anyio.Event(), anyio.Event()))
        self._driving, self._driven = thread.do(lambda: (anyio.Lock(), AsyncExitStack()))
        self._debugged: Debugged | None = None
        self._failure: BrowserError | None = None
        self._context: BrowserContext | None = None
        self._opened = False
        self._ended = thread.start(self._run)

    @property
    def context(self) -> BrowserContext:
        """The browser, once it is open."""
        assert self._context is not None
        return self._context

    @property
    def is_usable(self) -> bool:
        """Whether another test can use it: the browser was not closed and did not die."""
        return self._opened and not self.isolation.is_dirty and self._is_connected()

    def open(
        self,
        browser_type: BrowserType,
        *,
        launch_args: Mapping[str, Any],
        context_args: Mapping[str, Any],
    ) -> None:
        """Launch the browser, and wait until its extension is connected.

        Args:
            browser_type: Playwright's Chromium.
            launch_args: Arguments as for `browser_type.launch`.
            context_args: Arguments as for `browser.new_context`.

        Raises:
            OpenTabsError: There is no Chromium, a setting is not valid, or the extension did not
                connect.
        """
        try:
            plan = self._result(self._plan)
            options = launch_options(plan, launch_args, context_args)
            if self._settings.hands:
                options["args"] = [*options["args"], _DEBUGGED]
            if self._offline_proxy is not None:
                options.pop("proxy", None)
                options["args"] = [*options["args"], *self._offline_proxy.switches(plan.extension)]
            try:
                plan.prepare()
                self._context = browser_type.launch_persistent_context(plan.profile, **options)
            except Error as error:
                self._failure = plan.not_started(error.message)
            except BrowserError as error:
                self._failure = error
            self._thread.do(self._launched.set)
            self.session = self._result(self._started)
        except BaseException:
            self.close()
            raise
        self._opened = True
        session = self.session
        if self._offline_proxy is not None:
            self.sockets = Sockets(self.context)  # before the isolation notes what tests do
        self.faults.attach(session, self.context)
        handle_gone = session.internals.browsers[0].handle_gone
        self.context.on("close", lambda _: self._thread.do(handle_gone))
        self.isolation = Isolation(
            self.context,
            permissions=context_args.get("permissions") or (),
            keeps_storage=self._settings.profile is not None,
            is_watched=options["headless"] is False,
        )

    def clear_faults(self) -> None:
        """Remove a test's faults."""
        with self._killed_if_it_hangs():
            self.faults.clear()

    def clean(self) -> None:
        """Undo what else a test did to the browser, so that another test can use it."""
        with self._killed_if_it_hangs():
            self.isolation.clean()

    def close(self) -> None:
        """Close the browser, then stop the server."""
        if self._context is not None:
            with suppress(Error), self._killed_if_it_hangs():  # it may have died
                self._context.close()
        self._failure = self._failure or BrowserError("The browser was closed.")
        self._thread.do(self._stop.set)
        self._thread.do(self._launched.set)
        if not self._thread.wait(self._ended, STOP_WITHIN):
            logger.warning("The server of a test has not stopped within %g s", STOP_WITHIN)
        if self._offline_proxy is not None:
            self._offline_proxy.close()

    @contextmanager
    def _killed_if_it_hangs(self) -> Generator[None]:
        """Kill the browser if this takes too long; Playwright would wait for it without end."""
        timer = Timer(CLEAN_WITHIN, self._kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _kill(self) -> None:
        logger.warning(
            "The browser hung for %g s at the end of a test and was killed", CLEAN_WITHIN
        )
        end_browser_blocking(self._plan.result().scratch)

    def _is_connected(self) -> bool:
        # A test may have killed the service worker just before it ended.
        try:
            self._thread.run(self.session.internals.bridge.wait_connected, within=BACK_WITHIN)
        except TimeoutError:
            return False
        return True

    def _result(self, future: "Future[Any]") -> Any:
        if not self._thread.wait(future, START_WITHIN):
            raise BrowserError(f"The server did not start within {START_WITHIN:g} s.")
        return future.result()

    async def _drive(self) -> AsyncContext:
        """Return the browser as the server's thread drives it; connect the first time.

        Raises:
            ChainError: The browser is gone.
        """
        async with self._driving:
            if self._debugged is None or self._debugged.is_gone:
                endpoint = find_endpoint(self._plan.result().profile, None)
                if endpoint is None:
                    raise failures.no_browser("The test's browser is closed.")
                self._debugged = await self._driven.enter_async_context(debug(endpoint))
            return self._debugged.context

    async def _run(self) -> None:
        seams = Seams(
            self.clock,
            relay_faults(),
            self.faults.wrap_socket,
            launch=self._launch,
            drive=self._drive if self._settings.hands else None,
        )
        try:
            async with (
                self._driven,
                OpenTabs(
                    plugins=self._plugins,
                    tools=self._tools,
                    settings=self._settings,
                    _seams=seams,
                ) as session,
            ):
                self._started.set_result(session)
                await self._stop.wait()
        except Exception as error:
            # The waiter is in another thread; it always waits on one of these two futures.
            waiting = [each for each in (self._plan, self._started) if not each.done()]
            for future in waiting:
                future.set_exception(error)
            if not waiting:
                logger.exception("The server of a test failed")

    @asynccontextmanager
    async def _launch(self, planned: Planned) -> AsyncGenerator[None]:
        """Launch the browser from the test's thread; this is a `Launcher`."""
        plan = await planned()
        self._plan.set_result(plan)
        try:
            await self._launched.wait()
            if self._failure is not None:
                raise self._failure
            yield None
        finally:
            # At Ctrl-C, its driver may be gone before it, or may have just started it.
            await end_browser(plan.scratch)


def launch_options(
    plan: LaunchPlan, launch_args: Mapping[str, Any], context_args: Mapping[str, Any]
) -> dict[str, Any]:
    """Combine the extension's launch options with those of pytest-playwright.

    Raises:
        BrowserError: The options name a browser that refuses extensions.
    """
    asked = {**launch_args, **context_args}
    options = replace(plan, args=(*plan.args, *(asked.pop("args", None) or ()))).options
    # A device also names its browser, and a saved session is loaded into the running browser later.
    for name in ("default_browser_type", "storage_state"):
        asked.pop(name, None)
    channel = asked.get("channel")
    if channel is not None:
        if not channel.startswith("chromium"):
            raise BrowserError(
                f"Cannot run tests with --browser-channel {channel}: branded Chrome and Edge "
                "refuse to load extensions. Omit it, or use --browser-channel chromium."
            )
        del options["executable_path"]
    if "viewport" in asked:
        del options["no_viewport"]
    options["env"] |= asked.pop("env", None) or {}
    return options | asked
