"""Tool calls as steps in Playwright's trace, beside what the test does with the page."""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from inspect import currentframe
from pathlib import Path
from typing import Any, Final, Protocol

from playwright.sync_api import Error

from opentabs_py.core.text import one_line, shorten
from opentabs_py.errors import CallError
from opentabs_py.testing.call import Call
from opentabs_py.tracing.waterfall import headline

LONGEST: Final = 120  # characters of a step's title
_NOT_THE_TEST: Final = ("opentabs_py", "playwright", "contextlib")


class Tracing(Protocol):
    """Playwright's `context.tracing`, while it records."""

    def group(self, name: str, *, location: Any = None) -> Any:
        """Begin a step."""
        ...

    def group_end(self) -> None:
        """End it."""
        ...


class Steps:
    """Writes steps to a trace.

    Args:
        tracing: Records this test; None if nothing does.
    """

    def __init__(self, tracing: Tracing | None) -> None:
        self._tracing = tracing

    @contextmanager
    def step(
        self, what: str, name: str, arguments: Mapping[str, Any]
    ) -> Generator[Callable[[Call], None]]:
        """Show a call as a step that lasts as long as the context.

        Args:
            what: What the test does, for example `call`.
            name: The tool's MCP name.
            arguments: Its arguments.

        Yields:
            A function that shows within the step how the call has ended.
        """
        if self._tracing is None:
            yield lambda _call: None
            return
        given = json.dumps(arguments, ensure_ascii=False, default=repr) if arguments else ""
        title = shorten(one_line(f"{what} {name} {given}".rstrip()), LONGEST)
        with self._group(self._tracing, title):
            yield self._show_end

    def _show_end(self, call: Call) -> None:
        assert self._tracing is not None
        with self._group(self._tracing, shorten(one_line(_ending(call)), LONGEST)):
            pass

    @contextmanager
    def _group(self, tracing: Tracing, title: str) -> Generator[None]:
        # A trace is an aid: whatever fails in writing it does not fail the test.
        with suppress(Error):
            tracing.group(title, location=_test_line())
        try:
            yield
        finally:
            with suppress(Error):
                tracing.group_end()


def _ending(call: Call) -> str:
    record = call.running.record
    if record is not None:
        return headline(record).plain
    if isinstance(call.error, CallError):
        return f"{call.error.detail.code}: {call.error}"
    return "cancelled" if call.cancelled else "succeeded"


def _test_line() -> dict[str, Any] | None:
    """Return the line of the test that is being run, in Playwright's format."""
    frame = currentframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in _NOT_THE_TEST:
            return {"file": str(Path(frame.f_code.co_filename)), "line": frame.f_lineno}
        frame = frame.f_back
    return None
