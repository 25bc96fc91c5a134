"""The state that the console shows.

A page reads it at its own pace: it says which version it has seen, and gets what has changed since.
So what it has not read takes no memory, and a page that reads slowly skips what is outdated.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from opentabs_py.core.console.rows import call_row, stripped, weight
from opentabs_py.core.console.shelf import Delta, Shelf
from opentabs_py.core.trace.record import CallRecord

ENDED_CALLS: Final = 5_000
RUNNING_CALLS: Final = 5_000  # beyond that, those that started first are not shown
LOGS: Final = 1_000
WHOLE: Final = 64 * 1024 * 1024  # bytes of records of ended calls; older ones lose their details
FIRST_CALLS: Final = 200  # what a page shows at first; the others take longer than all the rest
MOST: Final = 10_000  # plugins, tabs, browsers, questions: no more than there are

Section = Literal["plugins", "tabs", "browsers", "questions", "problems"]
SECTIONS: Final[tuple[Section, ...]] = ("plugins", "tabs", "browsers", "questions", "problems")
Row = Mapping[str, Any]


class Board:
    """The calls, tabs, plugins and logs of a server, as its pages see them.

    Args:
        ended: How many ended calls are kept.
        logs: How many log records are kept.
        whole: About how many bytes the records of ended calls may take.

    Attributes:
        version: Increases with every change.
    """

    def __init__(self, *, ended: int = ENDED_CALLS, logs: int = LOGS, whole: int = WHOLE) -> None:
        self.version = 1
        self._running: Shelf[CallRecord] = Shelf(RUNNING_CALLS)
        self._ended: Shelf[CallRecord] = Shelf(ended)
        self._whole: deque[tuple[str, int]] = deque()  # the ended calls that have their details
        self._weight = 0
        self._most_weight = whole
        self._logs: Shelf[Row] = Shelf(logs)
        self._sections: dict[Section, Shelf[Row]] = {name: Shelf(MOST) for name in SECTIONS}

    # --- what happens ---

    def handle_call(self, record: CallRecord) -> None:
        """Handle the start of a call, or something that it reported."""
        self._running.put(record.call_id, record, self._next())

    def handle_end(self, record: CallRecord) -> None:
        """Handle the end of a call."""
        version = self._next()
        self._running.remove(record.call_id, version)
        self._ended.put(record.call_id, record, version)
        heavy = weight(record)
        self._whole.append((record.call_id, heavy))
        self._weight += heavy
        while self._weight > self._most_weight:
            key, less = self._whole.popleft()
            self._weight -= less
            if (old := self._ended.get(key)) is not None:
                self._ended.amend(key, stripped(old))

    def handle_log(self, entry: Row) -> None:
        """Handle a log record."""
        version = self._next()
        self._logs.put(str(version), {"id": version, **entry}, version)

    def set(self, section: Section, rows: Mapping[str, Row]) -> None:
        """Replace the rows of a section, by their keys; equal rows count as unchanged."""
        if self._sections[section].replace(rows, self.version + 1):
            self.version += 1

    # --- what readers get ---

    def record(self, call_id: str) -> CallRecord | None:
        """Return the record of a call, so far if it runs; None if there is none."""
        return self._running.get(call_id) or self._ended.get(call_id)

    def since(self, version: int) -> dict[str, Any] | None:
        """Return what has changed after a version, as JSON; None if nothing has.

        Args:
            version: The reader's version; 0 if it knows nothing.
        """
        if version >= self.version:
            return None
        ended = self._ended.since(version)
        running = self._running.since(version)
        rows: list[Row] = [
            *(call_row(each, running=False) for each in ended.changed),
            *(call_row(each, running=True) for each in running.changed),
        ]
        gone = [key for key in (*ended.gone, *running.gone) if self.record(key) is None]
        # Whoever missed removals of either has to start over with both.
        if (ended.reset or running.reset) and version > 0:
            return self.since(0)
        update: dict[str, Any] = {"version": self.version}
        calls = Delta(version == 0, tuple(rows), tuple(gone))
        sections: dict[str, Delta[Row]] = {"calls": calls, "logs": self._logs.since(version)}
        sections |= {name: shelf.since(version) for name, shelf in self._sections.items()}
        for name, changes in sections.items():
            if changes:
                update[name] = changes.to_json()
        return update

    def _next(self) -> int:
        self.version += 1
        return self.version


def in_parts(update: Row) -> Sequence[Row]:
    """Return an update as several: first what is seen at first, then the other calls.

    Only the last has the version, so a reader that misses it gets everything again.
    """
    calls = update.get("calls")
    if calls is None or len(calls["changed"]) <= FIRST_CALLS:
        return [update]
    changed = calls["changed"]
    first: Row = {**calls, "changed": changed[-FIRST_CALLS:]}
    rest: Row = {**calls, "changed": changed[:-FIRST_CALLS], "reset": False, "gone": []}
    return [{**update, "version": 0, "calls": first}, {"version": update["version"], "calls": rest}]
