"""Drift of recorded calls."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Final

from opentabs_py.core import codes, failures
from opentabs_py.core.drift.live import LiveRun, StepOutcome
from opentabs_py.core.drift.obstacles import why_unknown
from opentabs_py.core.drift.report import CallVerdict, Finding, Severity
from opentabs_py.core.drift.site import ComparedSite
from opentabs_py.core.recording.exchange import RecordedCall, Recording
from opentabs_py.core.shapes.change import Change
from opentabs_py.core.shapes.changes import changed_values, changes
from opentabs_py.core.shapes.shape import shape_of
from opentabs_py.core.text import shorten

LACKING: Final = frozenset({"went", "renamed", "moved", "type", "null", "optional", "empty"})
_LONGEST: Final = 300  # characters of an error


def judge_call(
    recorded: RecordedCall,
    outcome: StepOutcome,
    samples: Sequence[Recording],
    site: ComparedSite,
    live: LiveRun,
) -> CallVerdict:
    """Return the verdict on a recorded call.

    Args:
        recorded: The call.
        outcome: How it ended this time.
        samples: All recordings of the site.
        site: Its responses.
        live: The run.
    """
    call = outcome.call
    seconds = 0.0 if call is None else call.seconds
    verdict = partial(CallVerdict, recorded.tool, recorded.arguments, seconds=seconds)
    if outcome.skipped:
        return verdict("skipped", reason=outcome.skipped)
    if outcome.barred:
        return verdict("unknown", reason=outcome.barred)
    if call is None:
        text = f"{outcome.unready} does not get ready on the page"
        return verdict("drift", "tool", [Finding("readiness", text)])
    error = call.error or {}
    code, message = str(error.get("code", "")), str(error.get("message", ""))
    expected = None if recorded.error is None else str(recorded.error.get("code", ""))
    if code and code == expected:
        return verdict("same")
    if code and (reason := why_unknown(outcome)):
        return verdict("unknown", reason=reason)
    if expected is not None:
        how = f"fails with {code}" if code else "succeeds"
        finding = Finding("error", f"failed with {expected}, and {how}")
        return verdict("drift", "harmless", [finding])
    if code and code != codes.RESULT_BREAKS_SCHEMA:
        text = f"fails with {code}: {shorten(message, _LONGEST)}"
        return verdict("drift", "tool", [Finding("error", text)])
    earlier = [
        each.value
        for recording in samples
        for each in recording.calls
        if each.error is None and _is_same(each, recorded)
    ]
    found = [*changes(shape_of(*earlier), shape_of(call.value))]
    found += changed_values(earlier, call.value, site.replaced)
    if code:
        # The rest is for an agent. Here no result follows, and it is the site that has changed.
        violations = message.removesuffix(failures.BROKEN_RESULT_FOLLOWS).rstrip()
        broken = Finding("schema", shorten(violations, _LONGEST))
        return verdict("drift", "schema", [broken, *map(Finding.of, found)])
    missed = _unfinished(recorded.tool, samples, site, live)
    return _judge_value(recorded.tool, verdict, found, missed, site)


def _judge_value(
    tool: str,
    verdict: "partial[CallVerdict]",
    found: Sequence[Change],
    missed: Sequence[Finding],
    site: ComparedSite,
) -> CallVerdict:
    empty = [change.path for change in found if change.what == "empty"]
    if empty and site.has_emptied(tool):
        # What is empty on the site has to be empty in the result.
        found = [change for change in found if change.what != "empty"]
        if not found:
            where = ", ".join(path or "the result" for path in empty)
            reason = f"The site has nothing in {where} now, so it cannot be compared."
            return verdict("unknown", reason=reason)
    if not found and not missed:
        return verdict("same")
    is_broken = missed or any(each.what in LACKING for each in found)
    severity: Severity = "tool" if is_broken else "harmless"
    return verdict("drift", severity, [*map(Finding.of, found), *missed])


def _unfinished(
    tool: str, samples: Sequence[Recording], site: ComparedSite, live: LiveRun
) -> list[Finding]:
    """Return the requests that a tool stops repeating after their responses have changed.

    That is how a tool looks that no longer finds the next page: its result is well-formed.
    """
    before = sum(call.tool == tool for each in samples for call in each.calls)
    since = sum(call.tool == tool for call in live.traffic.calls)
    found: list[Finding] = []
    for route, was, now in site.known():
        is_changed = any(change.what in LACKING for change in site.changes[route])
        often, seldom = was.tools[tool] / before, now.tools[tool] / since
        if is_changed and often > 1 and seldom == 1:
            text = f"sends {route} once (was {often:.3g} times), so it may miss further pages"
            found.append(Finding("requests", text))
    return found


def _is_same(one: RecordedCall, other: RecordedCall) -> bool:
    return one.tool == other.tool and _plain(one) == _plain(other)


def _plain(call: RecordedCall) -> str:
    return json.dumps(call.arguments, sort_keys=True)
