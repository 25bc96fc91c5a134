"""Wait for actions of Playwright, and say why one failed."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from opentabs_py.browser.driver import FAILURES
from opentabs_py.core import codes
from opentabs_py.errors import ToolError
from opentabs_py.hands.watching import Watched

_HEARTBEAT: Final = 5.0  # s
_DONE: Final = "click action done"  # in Playwright's log; then it waits for a navigation
_BEGUN: Final = "performing click action"  # in its log; whether the page has got it is not known
# In its log, of every attempt; the other lines say what was in the way.
_STEP: Final = re.compile(
    r"Call log|=====|(attempting|retrying|scrolling|done scrolling) |element is visible"
    r"|waiting (\d+ms|for element to be )"
)
_CLOSED: Final = "page, context or browser has been closed"


class PatientAction:
    """Waits for an action of Playwright, or for the dialog that it opens.

    Args:
        watched: What happens in the page.
        heartbeat: Called now and then until it ends, so that the call does not time out.
        failed: Returns the error of a failed action.
    """

    def __init__(
        self,
        watched: Watched,
        heartbeat: Callable[[], None],
        failed: Callable[[Exception], ToolError],
    ) -> None:
        self._watched = watched
        self._heartbeat = heartbeat
        self._failed = failed

    async def run(self, action: Callable[[], Awaitable[Any]]) -> Any:
        """Run an action; return None if a dialog is in its way, or if a click has closed the tab.

        Raises:
            ToolError: The action failed.
        """
        result: list[Any] = []
        failures: list[Exception] = []

        async def act(scope: anyio.CancelScope) -> None:
            try:
                result.append(await action())
            except (*FAILURES, ToolError) as error:
                failures.append(error)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(act, tasks.cancel_scope)
            while self._watched.dialog is None:
                with anyio.move_on_after(_HEARTBEAT):
                    await self._watched.has_dialog.wait()
                self._heartbeat()
            tasks.cancel_scope.cancel()
        if failures and not _has_closed_tab(failures[0]):
            [error] = failures
            raise error if isinstance(error, ToolError) else self._failed(error)
        return result[0] if result else None


def _has_closed_tab(error: Exception) -> bool:
    """Return whether an action failed because the tab was closed after it had begun."""
    return _CLOSED in str(error) and _BEGUN in str(error)


def action_failed(message: str) -> ToolError:
    """Return the error of an action, with what Playwright saw in its way."""
    lines = [line.strip(" -") for line in message.splitlines() if line.strip()]
    causes = [line for line in lines if not _STEP.match(line)]
    text = ". ".join(dict.fromkeys(each.rstrip(".") for each in causes[:1] + causes[-3:]))
    if "Timeout" in text and _DONE in message:
        return ToolError(
            f"The page was clicked, but the next one is late: {text}. Do not click again; wait for "
            "the page with page_wait_for, or take a snapshot.",
            codes.ACTION_TIMED_OUT,
            category="timeout",
        )
    if "Timeout" in text and _BEGUN in message:
        return ToolError(
            f"The page may have been clicked, and does not answer: {text}. Do not click again "
            "before a snapshot shows that it had no effect.",
            codes.ACTION_TIMED_OUT,
            category="timeout",
        )
    if "Timeout" in text:
        return ToolError(
            f"The action timed out: {text}. Take a snapshot to see why.",
            codes.ACTION_TIMED_OUT,
            category="timeout",
            retryable=True,
        )
    return ToolError(f"{text}.", codes.ACTION_FAILED)
