"""Keep the arguments and values of tool calls whole, for a recording."""

import json
from typing import Any

from pydantic_core import to_jsonable_python

from opentabs_py.core.excerpts import Excerpts
from opentabs_py.core.recording.exchange import RecordedCall
from opentabs_py.core.trace.record import CallRecord


class WholeValues(Excerpts):
    """Keeps values whole; a recording is scrubbed before it is written."""

    def of_value(self, value: Any) -> str:
        """Return a value as JSON; of one that JSON cannot hold, an excerpt.

        Arguments are recorded before they are validated, so they may be anything.
        """
        try:
            return json.dumps(value, default=_jsonable, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError):
            return super().of_value(value)

    def of_text(self, text: str) -> str:
        """Return a string as it is."""
        return text


class CallNotes:
    """The calls that end while a recording is made.

    Attributes:
        calls: Those to record, in the order they ended.
    """

    def __init__(self) -> None:
        self.calls: list[RecordedCall] = []

    def note(self, record: CallRecord) -> None:
        """Handle a call that has ended."""
        if (call := _recorded_call(record)) is not None:
            self.calls.append(call)


def _jsonable(value: Any) -> Any:
    return to_jsonable_python(value, fallback=repr)


def _recorded_call(record: CallRecord) -> RecordedCall | None:
    """Return a call for a recording; None if the server refused it, or it has no arguments."""
    if record.arguments is None or record.outcome in ("refused", "cancelled"):
        return None
    error = record.error
    return RecordedCall(
        record.name,
        json.loads(record.arguments),
        None if record.result is None else json.loads(record.result),
        None if error is None else {"code": error.code, "message": error.message},
        record.started,
        record.seconds,
    )
