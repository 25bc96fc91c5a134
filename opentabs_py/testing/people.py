"""The people of a test: each has a turn with a browser and a server of their own."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from opentabs_py.testing.sync_session import SyncOpenTabs
from opentabs_py.testing.turn import Turn

ALONE = ""  # the name of the only person, whom nobody names


class People:
    """The people of a test, from `begin` to `end`.

    Args:
        turns: Each person's turn, by name; of the only one, by `ALONE`.

    Attributes:
        first: The first one's turn; the fixtures `opentabs`, `page` and `context` use it.
    """

    def __init__(self, turns: Mapping[str, Turn]) -> None:
        self._turns = turns
        self.first = next(iter(turns.values()))
        browsers = _Browsers(
            {name: turn.tabs for name, turn in turns.items() if name != ALONE},
        )
        for turn in turns.values():
            turn.tabs.browsers = browsers
        self._ending = ExitStack()

    def handle_passed(self) -> None:
        """Handle that the test has passed: a recording that it made is then written at its end."""
        for turn in self._turns.values():
            turn.has_passed = True

    def begin(self, storage_states: Mapping[str, Any]) -> None:
        """Begin everyone's turn.

        Args:
            storage_states: The saved session to load into each browser, in Playwright's format.
        """
        for name, turn in self._turns.items():
            self._ending.callback(turn.end)
            turn.begin(storage_states.get(name))

    def end(self) -> None:
        """End everyone's turn; see `Turn.end`."""
        self._ending.close()

    def complaints(self, *, allow_breaches: bool) -> list[str]:
        """Return the reasons why this passing test must fail; see `breaches`."""
        return [
            complaint
            for turn in self._turns.values()
            for complaint in turn.complaints(allow_breaches=allow_breaches)
        ]

    def failure_report(self, *, shown: str) -> str:
        """Return the report of a failure, one person after the other."""
        reports = {name: turn.failure_report(shown=shown) for name, turn in self._turns.items()}
        return "\n\n".join(
            text if name == ALONE else f"--- {name} ---\n{text}" for name, text in reports.items()
        )

    def explain_hangs(self) -> str:
        """Return why tools hang, one person after the other; "" if that is not known."""
        found = (turn.explain_hangs() for turn in self._turns.values())
        return "\n\n".join(text for text in found if text)

    def show_end(self, *, failed: bool) -> None:
        """Let those who watch see how the test's own code has ended; see `Turn.show_end`."""
        for turn in self._turns.values():
            turn.show_end(failed=failed)

    @property
    def chromium(self) -> str:
        """The version of the browser."""
        browser = self.first.context.browser
        return "" if browser is None else browser.version

    def pause(self, is_over: Callable[[], bool]) -> None:
        """Wait, with the pages alive, until `is_over()` is true or a browser is closed."""
        turns = self._turns.values()
        self.first.pause(lambda: is_over() or any(turn.browser_is_gone for turn in turns))

    def write_traces(self, stem: str) -> list[Path]:
        """Write each person's calls to a file among the test's artifacts; return the paths."""
        return [
            turn.write_trace(f"{stem if name == ALONE else f'{stem}-{name}'}.trace")
            for name, turn in self._turns.items()
        ]


class _Browsers(dict[str, SyncOpenTabs]):
    """The browsers of a test by name, with an error that says how to have one."""

    def __missing__(self, name: str) -> SyncOpenTabs:
        __tracebackhide__ = True  # pytest then shows the line that asks for it
        there = ", ".join(self) or "none"
        raise LookupError(
            f"This test has no browser named {name!r}; it has {there}. Name its browsers: "
            f'@pytest.mark.opentabs(browsers=["{name}", ...]).'
        )
