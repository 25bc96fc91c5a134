"""Compare a run of recorded calls with what was recorded."""

from collections.abc import Sequence
from dataclasses import replace

from opentabs_py.core.drift.calls import judge_call
from opentabs_py.core.drift.live import LiveRun
from opentabs_py.core.drift.obstacles import find_obstacle
from opentabs_py.core.drift.report import CallVerdict, RecordingVerdict
from opentabs_py.core.drift.requests import judge_requests
from opentabs_py.core.drift.site import ComparedSite, compare_site
from opentabs_py.core.recording.exchange import Recording


def judge(
    name: str,
    recorded: Recording,
    others: Sequence[Recording],
    live: LiveRun,
    volatile: Sequence[str] = (),
) -> RecordingVerdict:
    """Return how the site differs from a recording.

    Args:
        name: The recording's file.
        recorded: The recording whose calls were made again.
        others: More recordings of the site. The more there are, the better it is known what varies.
        live: What happened.
        volatile: Names of members of requests that do not count.
    """
    samples = [recorded, *others]
    site = compare_site(samples, live.traffic, volatile)
    calls = [
        judge_call(call, outcome, samples, site, live)
        for call, outcome in zip(recorded.calls, live.outcomes, strict=True)
    ]
    calls = [_if_read(call, site) for call in calls]
    if not (obstacle := find_obstacle(site, recorded, live)):
        return RecordingVerdict(name, live.traffic.url, calls, judge_requests(site, calls))
    calls = [_doubt(call, obstacle) for call in calls]
    is_blind = not any(call.state == "same" for call in calls)
    return RecordingVerdict(name, live.traffic.url, calls, reason=obstacle if is_blind else "")


def _if_read(call: CallVerdict, site: ComparedSite) -> CallVerdict:
    """Return the verdict of a call, which is unknown if a response was read then but not now."""
    if call.state != "same":
        return call
    for route, was, now in site.known():
        # Tools that only look at the status never read what the response contains, and pages abort
        # responses that they no longer need, such as those for what a user has typed before.
        is_as_before = was.is_unread and now.media
        if was.media and now.is_unread and not is_as_before and call.tool in now.tools:
            reason = f"The response to {route} could not be read in time. Try again."
            return replace(call, state="unknown", reason=reason)
    return call


def _doubt(call: CallVerdict, obstacle: str) -> CallVerdict:
    """Return the verdict of a call of an inconclusive run."""
    if call.state != "drift":
        return call
    return replace(call, state="unknown", severity=None, findings=(), reason=obstacle)
