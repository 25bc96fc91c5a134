"""Drift of the responses to requests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from opentabs_py.core.drift.report import CallVerdict, Finding, RequestVerdict, Severity, worst
from opentabs_py.core.drift.responses import Responses
from opentabs_py.core.drift.site import ComparedSite
from opentabs_py.core.shapes.change import Change
from opentabs_py.core.shapes.changes import changed_values
from opentabs_py.core.shapes.marks import lost_marks, tag_of
from opentabs_py.core.shapes.routes import Route

_LISTED: Final = 3  # selectors that may be the new ones


def judge_requests(site: ComparedSite, calls: Sequence[CallVerdict]) -> Sequence[RequestVerdict]:
    """Return how the responses to requests have changed.

    Args:
        site: The responses.
        calls: What has become of the calls.
    """
    broken = _broken(calls)
    verdicts: list[RequestVerdict] = []
    for route, was, now in site.known():
        tools = sorted({*was.tools, *now.tools})
        findings = [
            *_compare_responses(was, now, site.changes[route]),
            *_compare_redirects(was, now, site.replaced),
            *_compare_values(route, site),
            *_compare_pages(was, now, suspected=any(tool in broken for tool in tools)),
        ]
        if findings:
            severity = worst(broken[tool] for tool in tools if tool in broken)
            verdicts.append(RequestVerdict(str(route), tools, severity, findings))
    return verdicts


def _compare_responses(
    was: Responses, now: Responses, changed: Sequence[Change]
) -> Sequence[Finding]:
    found: list[Finding] = []
    refused = sorted(status for status in now.statuses - was.statuses if 400 <= status < 500)
    if refused:
        before = _or(was.statuses - {0}) or "no response"
        found.append(Finding("status", f"returns {_or(refused)} (was {before})"))
    elif was.media and now.media and not was.media & now.media:
        text = f"returns {_or(now.media)} (was {_or(was.media)})"
        found.append(Finding("media", text))
    # There may just be nothing to list.
    return [*found, *(Finding.of(change) for change in changed if change.what != "empty")]


def _compare_redirects(
    was: Responses, now: Responses, replaced: Collection[str]
) -> Sequence[Finding]:
    """Compare where requests are redirected to, unless part of that was a secret."""
    if not now.targets or was.targets & now.targets:
        return []
    if any(secret in target for target in was.targets for secret in replaced):
        return []
    before = f"redirected to {_or(was.targets)}" if was.targets else f"returned {_or(was.statuses)}"
    return [Finding("redirect", f"redirects to {_or(now.targets)} (it {before})")]


def _broken(calls: Sequence[CallVerdict]) -> Mapping[str, Severity]:
    """Return the severity of each broken tool."""
    broken: dict[str, Severity] = {}
    for call in calls:
        if call.severity is not None and call.severity != "harmless":
            broken[call.tool] = worst([broken.get(call.tool, "harmless"), call.severity])
    return broken


def _compare_values(route: Route, site: ComparedSite) -> Sequence[Finding]:
    """Compare what was the same in all recordings of the same request."""
    found: dict[str, Finding] = {}
    for key, values in site.now[route].values.items():
        asked = [each[route].values for each in site.before if route in each]
        earlier = [each[key][0] for each in asked if key in each]
        for change in changed_values(earlier, values[0], site.replaced):
            found.setdefault(change.path, Finding.of(change))
    return [*found.values()]


def _compare_pages(was: Responses, now: Responses, *, suspected: bool) -> Sequence[Finding]:
    """Compare the selectors of HTML pages."""
    known = {mark for page in was.marks for mark in page}
    new = sorted({mark for page in now.marks for mark in page} - known)
    found: list[Finding] = []
    for mark in lost_marks(was.marks, now.marks, suspected=suspected):
        alike = [each for each in new if tag_of(each) == tag_of(mark)]
        instead = f" ({', '.join(alike[:_LISTED])} is new)" if alike else ""
        found.append(Finding("selector", f"{mark} finds nothing{instead}", mark))
    return found


def _or(values: Iterable[object]) -> str:
    return " or ".join(sorted(map(str, values)))
