"""In which document a call runs: when to wait for one, when to ask the browser, when to give up."""

from dataclasses import dataclass
from typing import Final

from opentabs_py.core import codes, failures
from opentabs_py.core.protocol import DocumentState
from opentabs_py.core.tabs.selection import Tabs, Target, Wait
from opentabs_py.errors import CallError

# Only these mean that the tool was not started, so that it may be started elsewhere.
NOT_STARTED: Final = frozenset({codes.NOT_DELIVERED, codes.TAB_NOT_READY})
# A page that was just opened, or a user who just signed in, may not have been reported yet.
_WORTH_ASKING: Final = frozenset(
    {codes.PLUGIN_NOT_LOADED, codes.TAB_NOT_FOUND, codes.TAB_NOT_READY}
)

LONGEST: Final = 20.0  # s; a page that reloads again and again would be waited for without end
REDIRECTS: Final = 3  # pages that may navigate away, one after another, before a call gives up


@dataclass(frozen=True, slots=True)
class QueryTabs:
    """Request the tabs of the extension before the next step.

    Attributes:
        plugin: First ask this plugin's pages whether it is ready.
    """

    plugin: str | None = None


@dataclass(slots=True)
class Placement:
    """The search for one call's document.

    Call `step` until it returns a document. If the call fails there, `retry` says whether to search
    again.
    """

    target: Target
    _began: float | None = None
    _redirects: int = 0
    _has_asked: bool = False
    _has_moved: bool = False

    def step(self, tabs: Tabs, now: float) -> DocumentState | Wait | QueryTabs:
        """Return the document for the call, or what to do before the next step.

        Raises:
            ChainError: There is no document for it.
        """
        if now < tabs.held_until:
            return Wait(tabs.held_until, failures.not_connected(tabs.advice))
        if self._has_moved:
            self._has_moved = False
            return QueryTabs()
        choice = tabs.choose(self.target, now)
        if isinstance(choice, Wait):
            self._began = now if self._began is None else self._began
            if now >= self._began + LONGEST:
                raise choice.error
            return Wait(min(choice.until, self._began + LONGEST), choice.error)
        if not isinstance(choice, CallError):
            return choice
        if self._has_asked or choice.detail.code not in _WORTH_ASKING:
            raise choice
        self._has_asked = True
        return QueryTabs(self.target.plugin)

    def retry(self, error: CallError) -> bool:
        """Return whether to search again after a failure: the tool did not run in that document.

        The page navigated away, or the user signed out.
        """
        if error.detail.code not in NOT_STARTED or self._redirects == REDIRECTS:
            return False
        self._redirects += 1
        self._began = None
        self._has_asked, self._has_moved = False, True
        return True
