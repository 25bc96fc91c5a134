"""Make the calls of a recording again, at the live site."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

import anyio

from opentabs_py.browser.urls import cannot_open
from opentabs_py.core.drift.live import LiveRun, StepOutcome
from opentabs_py.core.drift.steps import Step, rebased, steps_of
from opentabs_py.core.recording.exchange import RecordedCall, Recording
from opentabs_py.errors import BrokenResultError, BrowserError, CallError
from opentabs_py.session.recording import SessionRecorder

if TYPE_CHECKING:
    from playwright.async_api import Page

    from opentabs_py.calling.tool import Tool
    from opentabs_py.session.session import OpenTabs

READY_WITHIN: Final = 15.0  # s; for a plugin, after its page has loaded
ENDS_WITHIN: Final = 1.0  # s; for a page's responses, once the user has interrupted the run
_WRITES: Final = "It may change something: it has no readOnlyHint. Pass --writes to call it."
_NO_TOOL: Final = "No tool of this name is served: it was renamed, or its plugin was skipped."
_INTERRUPTED: Final = "The run was interrupted before this call had ended."


class Interruption:
    """A user's request to end runs early, which still say what they have found.

    Attributes:
        by_signal: The signal by which it was made; None if it was not.
    """

    def __init__(self) -> None:
        self.by_signal: int | None = None
        self._scope: anyio.CancelScope | None = None

    @property
    def is_requested(self) -> bool:
        """Whether it was made."""
        return self.by_signal is not None

    def request(self, by_signal: int) -> bool:
        """Cancel the call that is running, and make no more.

        Returns:
            Whether that is new, and runs have begun; otherwise there is nothing to end early.
        """
        if self.is_requested or self._scope is None:
            return False
        self.by_signal = by_signal
        self._scope.cancel()
        return True

    @contextmanager
    def scope(self) -> Generator[None]:
        """Cancel what runs within, if it is or was requested."""
        with anyio.CancelScope() as self._scope:
            if self.is_requested:
                self._scope.cancel()
            yield


async def run_again(
    session: "OpenTabs",
    recorded: Recording,
    *,
    site: str | None = None,
    writes: bool = False,
    on_call: Callable[[], object] = lambda: None,
    interruption: Interruption | None = None,
) -> LiveRun:
    """Make the calls of a recording again, and record what the site answers.

    Args:
        session: The session, whose tools check their results strictly.
        recorded: The recording.
        site: The URL of the same site elsewhere; by default, the recorded one.
        writes: Also call tools that may change something.
        on_call: Called after each call.
        interruption: Ends the run early.

    Raises:
        BrowserError: Playwright's driver died.
    """
    steps = steps_of(recorded, site)
    home = rebased(recorded.url, recorded.url, site)
    is_anonymous = session.settings.signed_in is None and session.settings.profile is None
    recorder = await SessionRecorder.start(session, home)
    run = _Run(session, recorder, writes=writes)
    interruption = interruption or Interruption()
    page, failure, made = None, "", list[StepOutcome]()
    try:
        with interruption.scope():
            page = await session.open(home)
            for step in steps:
                made.append(await run.make(step, page))
                on_call()
    except BrowserError as error:
        failure = str(error)
    finally:
        traffic = await recorder.stop(within=ENDS_WITHIN if interruption.is_requested else inf)
        if page is not None:
            from opentabs_py.session.browsers.browser import close_page  # loaded with the page

            await close_page(page)
    session.check_driver()
    traffic = replace(traffic, calls=run.calls)
    unmade = StepOutcome(barred=_INTERRUPTED if interruption.is_requested else "")
    made += [run.leave_out(step) or unmade for step in steps[len(made) :]]
    return LiveRun(traffic, made, is_anonymous, failure)


class _Run:
    """The calls of one recording.

    Attributes:
        calls: Those that were made, also one that was interrupted.
    """

    def __init__(self, session: "OpenTabs", recorder: SessionRecorder, *, writes: bool) -> None:
        self.calls: list[RecordedCall] = []
        self._unready: set[str] = set()  # plugins and pages' tools; each is waited for once
        self._session = session
        self._recorder = recorder
        self._writes = writes

    async def make(self, step: Step, page: "Page") -> StepOutcome:
        """Make a call, in the page in which it was made."""
        if (left_out := self.leave_out(step)) is not None:
            return left_out
        await self._open(page, step.url)
        tool = step.call.tool
        found = self._session.internals.registry.get(tool)
        if found is None or found.listing.is_of_page:
            found = await self._wait_registered(tool)
            if found is None:
                self._unready.add(tool)
                return StepOutcome(unready=tool)
            if (left_out := self.leave_out(step)) is not None:
                return left_out
        plugin = found.listing.owner
        if not found.listing.is_of_page and not await self._is_ready(plugin):
            self._unready.add(plugin)
            return StepOutcome(unready=plugin)
        return await self._call(step.call)

    def leave_out(self, step: Step) -> StepOutcome | None:
        """Return why a call is not to be made, whatever its page is; None if it is to be made."""
        found = self._session.internals.registry.get(step.call.tool)
        if found is None:  # a page may register it
            return None if self._session.settings.webmcp else StepOutcome(barred=_NO_TOOL)
        if not (self._writes or found.listing.is_read_only):
            return StepOutcome(skipped=_WRITES)
        if step.scrubbed:
            return StepOutcome(
                barred=f"Its arguments contain {step.scrubbed!r} in place of a secret, so it "
                "cannot be called as it was."
            )
        return None

    async def _open(self, page: "Page", url: str) -> None:
        if _plain(page.url) != _plain(url):
            await self._recorder.wait_read()
            await _go(page, url)

    async def _wait_registered(self, tool: str) -> "Tool | None":
        """Return a tool that the page registers itself; None if it does not."""
        server = self._session.internals
        if tool not in self._unready:
            with anyio.move_on_after(READY_WITHIN):
                while True:
                    changed = server.bridge.changed()
                    server.page_tools.refresh()
                    if (found := server.registry.get(tool)) is not None:
                        return found
                    await changed.wait()
        return None

    async def _is_ready(self, plugin: str) -> bool:
        if plugin in self._unready:
            return False
        with anyio.move_on_after(READY_WITHIN):
            await self._session.internals.bridge.wait_ready(plugin)
            return True
        return False

    async def _call(self, recorded: RecordedCall) -> StepOutcome:
        started, began = time.time(), time.monotonic()
        value, error, category = None, None, None
        try:
            value = await self._session.call(recorded.tool, recorded.arguments)
        except CallError as failed:
            value = failed.value if isinstance(failed, BrokenResultError) else None
            error = {"code": failed.detail.code, "message": failed.detail.message}
            category = failed.detail.category
        finally:
            seconds = time.monotonic() - began
            call = RecordedCall(recorded.tool, recorded.arguments, value, error, started, seconds)
            self.calls.append(call)
        return StepOutcome(call, category)


async def _go(page: "Page", url: str) -> None:
    from opentabs_py.browser.driver import FAILURES  # it is loaded once there is a page

    try:
        await page.goto(url)
    except FAILURES as error:
        raise cannot_open(url, error) from error


def _plain(url: str) -> str:
    return url.partition("#")[0]
