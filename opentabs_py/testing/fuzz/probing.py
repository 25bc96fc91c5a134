"""Call a tool and check what it promises: alone, beside other calls, and when it is cancelled."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from time import monotonic
from typing import Any, Final, Self

from playwright.sync_api import Error, Page

from opentabs_py.core.sites import match_patterns
from opentabs_py.core.sites.match_patterns import MatchPattern
from opentabs_py.testing.call import Call
from opentabs_py.testing.expectations.verdicts import CallSnapshot
from opentabs_py.testing.fuzz.contract import (
    Breach,
    documented_codes,
    find_breach,
    find_foreign,
    find_unexpected_end,
    reached_origin,
)
from opentabs_py.testing.fuzz.page_watch import PageWatch
from opentabs_py.testing.sync_session import SyncTool

Arguments = Mapping[str, Any]

_LOOK_EVERY: Final = 0.01  # s; while a cancelled tool still runs
_ANSWERS_WITHIN: Final = 2.0  # s; a page that hangs does not load again either


class Probe:
    """Calls one tool, while it is entered.

    Args:
        tool: The tool.
        within: Seconds that a call may take.
        stops_within: Seconds in which a cancelled tool has to stop.
        codes: Further codes that the tool's errors may have.
        may_fetch: Match patterns of URLs that the tool may fetch outside its plugin's sites.

    Attributes:
        made: How many calls were made.
    """

    def __init__(
        self,
        tool: SyncTool,
        *,
        within: float,
        stops_within: float,
        codes: Collection[str],
        may_fetch: Sequence[str],
    ) -> None:
        self.made = 0
        self._tool = tool
        self._tabs = tool.opentabs
        self._within = within
        self._stops_within = stops_within
        self._documented = documented_codes(tool.listing.description, codes)
        patterns = (*may_fetch, *tool.sites)
        self._patterns: list[MatchPattern] = [match_patterns.parse(each) for each in patterns]
        self._pages = PageWatch(self._tabs.context, tool.runs_in, tool.name_in_page)
        self._home: list[tuple[Page, str]] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._pages)
        self._home = [(page, page.url) for page in self._pages.pages]
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def url(self) -> str | None:
        """The page in which the tool is called; None for a tool that needs none."""
        return self._home[0][1] if self._home else None

    def call(self, arguments: Arguments) -> tuple[CallSnapshot, float, Breach | None]:
        """Make a call; return how it ended, after how many seconds, and the promise it broke."""
        self._pages.requested.clear()
        began = monotonic()
        made = self._start(arguments)
        ended = self._wait(made)
        took = monotonic() - began
        breach = find_breach(ended, documented=self._documented, within=self._within)
        if breach is not None and breach.kind in ("end", "page"):
            made.cancel()
            return ended, took, breach  # its page may not answer
        return ended, took, self._find_trouble_in_page() or breach

    def call_and_again(
        self, arguments: Arguments, known: Arguments | None, *, always: bool = True
    ) -> tuple[CallSnapshot, float, Breach | None]:
        """Make a call, and one that is known to succeed, which the first must not affect.

        Args:
            arguments: Those of the first call.
            known: Those of the second; None to make only the first.
            always: Whether to make the second even if the first succeeded.
        """
        ended, took, breach = self.call(arguments)
        if breach is None and known is not None and (always or ended.outcome != "succeeded"):
            _, breach = self.call_known(known)
        return ended, took, breach

    def call_known(self, known: Arguments) -> tuple[float, Breach | None]:
        """Make a call that is known to succeed, which those before it must not affect.

        Returns:
            How many seconds it took, and the promise that was broken.
        """
        ended, took, breach = self.call(known)
        if breach is not None and breach.kind != "fetch":
            return took, Breach("other", f"affects a later call, which {breach.text}")
        if (how := find_unexpected_end(ended)) is not None:
            return took, Breach("other", f"affects a later call, which {how}")
        return took, None

    def cancel(self, arguments: Arguments, moment: float, before: CallSnapshot) -> Breach | None:
        """Cancel a call while the same call runs beside it, and make it again afterwards.

        Args:
            arguments: Those of all three.
            moment: Seconds after its tool has started.
            before: How this call ended before.
        """
        self._pages.forget_cancelled()
        beside = self._start(arguments)
        cancelled = self._start(arguments)
        if moment > 0:
            cancelled.wait_up_to(moment)
        cancelled.cancel()
        after, _, breach = self.call(arguments)
        if breach is not None and breach.kind != "fetch":
            return Breach("page", f"was cancelled after {moment:g} s; the next call {breach.text}")
        has_succeeded = before.outcome == "succeeded"
        if has_succeeded and (changed := find_unexpected_end(after)) is not None:
            text = f"was cancelled after {moment:g} s; the next call, which had succeeded before,"
            return Breach("page", f"{text} {changed}")
        neighbour = self._wait(beside)
        if has_succeeded and (changed := find_unexpected_end(neighbour)) is not None:
            return Breach("other", f"was cancelled, and the same call beside it {changed}")
        return self._find_not_stopped(moment)

    def recover(self) -> None:
        """Load the pages again, because a call may have broken them."""
        self._pages.forget_cancelled()
        for index, (page, url) in enumerate(self._home):
            if self._tool.page_answers(page, _ANSWERS_WITHIN):
                page.goto(url)
            else:  # it hangs, or is closed
                with suppress(Error):
                    page.close()
                new = self._tabs.context.new_page()
                new.goto(url)
                self._home[index] = new, url

    def _start(self, arguments: Arguments) -> Call:
        self.made += 1
        return self._tabs.start(self._tool.name, arguments)

    def _wait(self, call: Call) -> CallSnapshot:
        with suppress(TimeoutError):
            call.wait(self._within)
        return CallSnapshot.of(call.running)

    def _find_trouble_in_page(self) -> Breach | None:
        """Return what a call did to its page, or fetched there."""
        for page in self._pages.pages:
            # Before it answers, its requests and its console messages so far have arrived.
            if not self._tool.page_answers(page, self._within):
                return Breach("page", f"left a page that does not answer within {self._within:g} s")
        origins = {origin for _, url in self._home if (origin := reached_origin(url)) is not None}
        foreign = find_foreign(self._pages.requested, self._patterns, origins)
        if foreign is not None:
            return Breach("fetch", f"fetched {foreign}, which is outside its plugin's sites")
        return None

    def _find_not_stopped(self, moment: float) -> Breach | None:
        """Return a breach if the tool did not stop when it was cancelled."""
        while self._pages.is_stopping:
            taken = self._pages.stopping_time()
            if taken is not None and taken > self._stops_within:
                break
            self._tabs.sleep(_LOOK_EVERY)
        taken = self._pages.stopping_time()
        if taken is None or taken <= self._stops_within:
            return None
        now = "still ran" if self._pages.is_stopping else "ran on until"
        return Breach(
            "cancel",
            f"was cancelled after {moment:g} s and {now} {taken:.1f} s later. "
            "Pass context.signal on to what it waits for",
        )
