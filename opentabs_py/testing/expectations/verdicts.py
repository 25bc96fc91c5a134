"""Decide whether a call meets an expectation: pure functions of a snapshot of the call.

Each returns a `Verdict`. A call that has ended no longer changes, so a verdict about it is
final. While it is running, much is undecided, and is checked again later.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from opentabs_py.calling.running import CallLog, RunningCall
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.schemas.checker import Checker
from opentabs_py.core.text import quantity
from opentabs_py.core.trace.record import Outcome, outcome_of
from opentabs_py.errors import CallError, CallTimeoutError
from opentabs_py.testing.expectations.values import difference, is_within, shortened


@dataclass(frozen=True, slots=True)
class CallSnapshot:
    """A snapshot of a call.

    Attributes:
        error: Why it returned no value.
        output_schema: The tool's output schema.
    """

    name: str
    ended: bool
    cancelled: bool = False
    value: Any = None
    error: Exception | None = None
    reports: Sequence[ProgressReport] = ()
    logs: Sequence[CallLog] = ()
    output_schema: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, call: RunningCall) -> "CallSnapshot":
        """Return a snapshot of a call."""
        ended = call.ended  # read first: if it is true, everything read afterwards is complete
        return cls(
            name=call.name,
            ended=ended,
            cancelled=call.cancelled,
            value=call.value if ended and call.error is None and not call.cancelled else None,
            error=call.error,
            reports=tuple(call.progress),
            logs=tuple(call.logs),
            output_schema=call.output_schema,
        )

    @property
    def outcome(self) -> Literal["running"] | Outcome:
        """How it ended, if it has."""
        if not self.ended:
            return "running"
        if self.error is not None:
            return outcome_of(self.error)
        return "cancelled" if self.cancelled else "succeeded"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an expectation holds.

    Attributes:
        holds: None while undecided.
        got: A description of the actual state.
        may_change: Whether a decided verdict may still change.
    """

    holds: bool | None
    got: str
    may_change: bool = False


def running(seen: CallSnapshot) -> Verdict:
    """Judge whether the call has not ended."""
    return Verdict(not seen.ended, ending(seen), may_change=not seen.ended)


def succeeded(seen: CallSnapshot) -> Verdict:
    """Judge whether the call returned a value."""
    return Verdict(seen.outcome == "succeeded" if seen.ended else None, ending(seen))


def failed(
    seen: CallSnapshot,
    *,
    code: str | None,
    category: str | None,
    retryable: bool | None,
    message: str | re.Pattern[str] | None,
) -> Verdict:
    """Judge whether the call failed, with an error that has these fields."""
    if not seen.ended:
        return Verdict(None, ending(seen))
    if isinstance(seen.error, CallError):
        detail = seen.error.detail
        holds = (
            (code is None or detail.code == code)
            and (category is None or detail.category == category)
            and (retryable is None or detail.retryable == retryable)
            and (message is None or re.search(message, detail.message) is not None)
        )
    else:
        # An error of the MCP client, for example, has only a text.
        holds = (
            seen.error is not None
            and (code is None and category is None and retryable is None)
            and (message is None or re.search(message, str(seen.error)) is not None)
        )
    return Verdict(holds, ending(seen))


def timed_out(seen: CallSnapshot, which: Literal["idle", "ceiling"] | None) -> Verdict:
    """Judge whether a timer ended the call."""
    if not seen.ended:
        return Verdict(None, ending(seen))
    error = seen.error
    holds = isinstance(error, CallTimeoutError) and which in (None, error.timer)
    return Verdict(holds, ending(seen))


def cancelled(seen: CallSnapshot) -> Verdict:
    """Judge whether the call was cancelled."""
    return Verdict(seen.outcome == "cancelled" if seen.ended else None, ending(seen))


def progressed(
    seen: CallSnapshot,
    reports: Sequence[Mapping[str, Any]] | None,
    *,
    least: int | None,
    monotonic: bool,
) -> Verdict:
    """Judge whether the tool reported progress as expected."""
    have = len(seen.reports)
    got = quantity(have, "progress report")
    if monotonic and (step := not_increasing(seen.reports)) is not None:
        return Verdict(holds=False, got=step)
    if reports is not None:
        members = [set(each) for each in reports]
        shown = [
            {
                name: value
                for name, value in report_json(each).items()
                if index >= len(members) or name in members[index]
            }
            for index, each in enumerate(seen.reports)
        ]
        as_given = shown == [dict(each) for each in reports[:have]]
        if not seen.ended:
            # A later report may still be one too many.
            got += " so far" if as_given else difference(list(reports), shown)
            return Verdict(None if as_given else False, got)
        if as_given and have == len(reports):
            return Verdict(holds=True, got=got)
        return Verdict(holds=False, got=got + difference(list(reports), shown))
    wanted = 1 if least is None else least
    if have < wanted:
        return Verdict(False if seen.ended else None, got)
    # A later report may still break the rule.
    return Verdict(None if monotonic and not seen.ended else True, got)


def not_increasing(reports: Sequence[ProgressReport]) -> str | None:
    """Describe the first report that is not above the previous one; None if all increase.

    Reports without a value are skipped.
    """
    values = [(each.seq, each.progress) for each in reports if each.progress is not None]
    for (_, before), (seq, after) in pairwise(values):
        if after <= before:
            return f"report {seq + 1} says {after:g}, after {before:g}"
    return None


def matches_schema(seen: CallSnapshot) -> Verdict:
    """Judge whether the value matches the tool's output schema."""
    if seen.outcome != "succeeded":
        return Verdict(False if seen.ended else None, ending(seen))
    if seen.output_schema is None:
        return Verdict(holds=False, got="the tool has no output schema")
    violations = schema_violations(seen.output_schema, seen.value)
    return Verdict(not violations, "\n".join(violations) or "a value that matches")


def schema_violations(schema: Mapping[str, Any], value: Any) -> list[str]:
    """Return the places where a value violates a schema, and why."""
    violations = Checker(dict(schema)).violations(value)
    return [f"{path or 'the value'}: {why}" for path, why in violations]


def returned(seen: CallSnapshot, expected: Any) -> Verdict:
    """Judge whether the value has at least these members."""
    if seen.outcome != "succeeded":
        return Verdict(False if seen.ended else None, ending(seen))
    if is_within(expected, seen.value):
        return Verdict(holds=True, got=shortened(seen.value))
    return Verdict(holds=False, got="a different value" + difference(expected, seen.value))


def logged(seen: CallSnapshot, level: str | None, text: str | re.Pattern[str] | None) -> Verdict:
    """Judge whether the plugin logged this during the call."""
    for entry in seen.logs:
        of_level = level is None or entry.level == level
        if of_level and (text is None or has_text(entry.message, text)):
            return Verdict(holds=True, got=f"{entry.level}: {entry.message}")
    lines = [f"{entry.level}: {entry.message}" for entry in seen.logs]
    return Verdict(False if seen.ended else None, "\n".join(lines) or "no logs")


def has_text(message: str, text: str | re.Pattern[str]) -> bool:
    """Return whether a message contains a string, or matches a pattern anywhere."""
    return text in message if isinstance(text, str) else text.search(message) is not None


def ending(seen: CallSnapshot) -> str:
    """Return one line that describes the state of a call."""
    reports = quantity(len(seen.reports), "progress report")
    match seen.outcome:
        case "running":
            return f"still running, {reports}"
        case "succeeded":
            return f"succeeded, {reports}: {shortened(seen.value)}"
        case "cancelled":
            return f"cancelled, {reports}"
        case outcome:
            which = f" ({seen.error.timer})" if isinstance(seen.error, CallTimeoutError) else ""
            code = f"{seen.error.detail.code}: " if isinstance(seen.error, CallError) else ""
            ended = outcome.replace("_", " ")
            return f"{ended}{which}, {reports}: {code}{seen.error}"


def report_json(report: ProgressReport) -> dict[str, Any]:
    """Return the members of a report that are set."""
    members = {
        "progress": _number(report.progress),
        "total": _number(report.total),
        "message": report.message,
    }
    return {name: value for name, value in members.items() if value is not None}


def _number(value: float | None) -> float | None:
    """Return a number as a test writes it: 1 instead of the wire's 1.0."""
    return int(value) if value is not None and float(value).is_integer() else value
