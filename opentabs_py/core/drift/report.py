"""The drift report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from opentabs_py.core.shapes.change import Change, What

Severity = Literal["harmless", "tool", "schema"]
"""`schema`: a result no longer matches its output schema. `tool`: a tool fails, or its result
lacks something. `harmless`: the site has changed, but the tool still works."""

Kind = (
    What
    | Literal["error", "schema", "readiness", "requests", "status", "redirect", "media", "selector"]
)
"""What a finding is about: a change of a shape; a call's error, its output schema, or its plugin's
readiness; requests that a tool no longer sends; a response's status, the path to which it redirects
or its media type; a selector."""

State = Literal["same", "drift", "unknown", "skipped"]

SEVERITIES: Final[Sequence[Severity]] = ("harmless", "tool", "schema")
SAME, DRIFT, UNKNOWN = 0, 1, 3  # exit codes


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference.

    Attributes:
        what: Which kind.
        text: What has changed, in a sentence without a full stop.
        path: The member or selector; empty if it is about the whole.
    """

    what: Kind
    text: str
    path: str = ""

    @classmethod
    def of(cls, change: Change) -> "Finding":
        """Return a change of a shape."""
        return cls(change.what, str(change), change.path)


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """What has become of a recorded call.

    Attributes:
        tool: The tool's MCP name.
        arguments: With which it was called.
        state: `same`; `drift`; `unknown` if that is inconclusive; `skipped` if it was not called.
        severity: How bad the drift is.
        findings: What has changed.
        reason: Why it is unknown or was skipped, in a sentence.
        seconds: How long the call took now.
    """

    tool: str
    arguments: Mapping[str, Any]
    state: State
    severity: Severity | None = None
    findings: Sequence[Finding] = ()
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class RequestVerdict:
    """How the responses to a request have changed.

    Attributes:
        request: Such as `GET /api/items/{id}`.
        tools: The tools during whose calls it was sent; none if only the page sent it.
        severity: That of the calls that it has broken, or `harmless`.
        findings: What has changed.
    """

    request: str
    tools: Sequence[str]
    severity: Severity
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class RecordingVerdict:
    """How a site differs from one recording.

    Attributes:
        recording: The recording's file.
        url: The page that was opened.
        calls: The recorded calls, in their order.
        requests: Requests whose responses have changed.
        reason: Why this recording is inconclusive; empty if it is not.
    """

    recording: str
    url: str
    calls: Sequence[CallVerdict] = ()
    requests: Sequence[RequestVerdict] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DriftReport:
    """How sites differ from all recordings of a plugin."""

    recordings: Sequence[RecordingVerdict] = field(default_factory=list[RecordingVerdict])

    @property
    def states(self) -> Mapping[State, int]:
        """How many calls there are of each state."""
        return Counter(call.state for each in self.recordings for call in each.calls)

    def exit_code(self, least: Severity = "harmless") -> int:
        """Return 1 if there is drift that is at least that severe, 3 if inconclusive, else 0.

        It is conclusive if all calls that were not skipped have been compared, and there is one.
        """
        if any(SEVERITIES.index(each) >= SEVERITIES.index(least) for each in self._severities()):
            return DRIFT
        states = self.states
        compared = states.get("same", 0) + states.get("drift", 0)
        is_certain = compared and not states.get("unknown")
        return SAME if is_certain and not any(each.reason for each in self.recordings) else UNKNOWN

    def _severities(self) -> Iterable[Severity]:
        for each in self.recordings:
            for call in each.calls:
                if call.severity is not None:
                    yield call.severity
            for request in each.requests:
                yield request.severity


def worst(severities: Iterable[Severity]) -> Severity:
    """Return the worst of some severities; `harmless` if there are none."""
    found = sorted(severities, key=SEVERITIES.index)
    return found[-1] if found else "harmless"
