"""The responses of a site, then and now."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opentabs_py.core.drift.responses import Responses, responses_of
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.shapes.change import Change
from opentabs_py.core.shapes.changes import changes
from opentabs_py.core.shapes.endpoints import Endpoint
from opentabs_py.core.shapes.shape import shape_of


@dataclass(frozen=True, slots=True)
class ComparedSite:
    """The responses of a site, then and now; see `compare_site`.

    Attributes:
        before: The responses of each recording.
        was: The responses of all recordings.
        now: The responses of this run.
        changes: How the JSON of the endpoints that were asked both times has changed.
        replaced: What the recordings have in place of secrets.
    """

    before: Sequence[Mapping[Endpoint, Responses]]
    was: Mapping[Endpoint, Responses]
    now: Mapping[Endpoint, Responses]
    changes: Mapping[Endpoint, Sequence[Change]]
    replaced: Collection[str]

    def known(self) -> Iterable[tuple[Endpoint, Responses, Responses]]:
        """Yield each endpoint requested both times, with its responses then and now."""
        for endpoint in self.changes:
            yield endpoint, self.was[endpoint], self.now[endpoint]

    def has_emptied(self, tool: str) -> bool:
        """Return whether a list in the site's responses during a tool's calls is empty now."""
        return any(
            change.what == "empty"
            for endpoint, was, now in self.known()
            if tool in was.tools or tool in now.tools
            for change in self.changes[endpoint]
        )


def compare_site(
    recordings: Sequence[Recording], traffic: Recording, volatile: Sequence[str] = ()
) -> ComparedSite:
    """Return the responses of a site in some recordings, and in a run.

    Args:
        recordings: What was recorded.
        traffic: What passed in the run.
        volatile: Names of members of requests that do not count.
    """
    before = [responses_of(each, volatile) for each in recordings]
    was, now = _joined(before), responses_of(traffic, volatile)
    changed = {
        endpoint: changes(shape_of(*responses.samples), shape_of(*now[endpoint].samples))
        for endpoint, responses in was.items()
        if endpoint in now
    }
    replaced = {secret.replacement for each in recordings for secret in each.scrubbed}
    return ComparedSite(before, was, now, changed, replaced - {""})


def _joined(parts: Sequence[Mapping[Endpoint, Responses]]) -> Mapping[Endpoint, Responses]:
    """Return the responses of several recordings as one."""
    whole: dict[Endpoint, Responses] = {}
    for part in parts:
        for endpoint, responses in part.items():
            whole.setdefault(endpoint, Responses()).add(responses)
    return whole
