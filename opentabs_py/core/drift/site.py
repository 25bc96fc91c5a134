"""The responses of a site, then and now."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opentabs_py.core.drift.responses import Responses, responses_of
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.shapes.change import Change
from opentabs_py.core.shapes.changes import changes
from opentabs_py.core.shapes.routes import Route
from opentabs_py.core.shapes.shape import shape_of


@dataclass(frozen=True, slots=True)
class ComparedSite:
    """The responses of a site, then and now; see `compare_site`.

    Attributes:
        before: The responses of each recording.
        was: The responses of all recordings.
        now: The responses of this run.
        changes: How the JSON of the routes that were asked both times has changed.
        replaced: What the recordings have in place of secrets.
    """

    before: Sequence[Mapping[Route, Responses]]
    was: Mapping[Route, Responses]
    now: Mapping[Route, Responses]
    changes: Mapping[Route, Sequence[Change]]
    replaced: Collection[str]

    def known(self) -> Iterable[tuple[Route, Responses, Responses]]:
        """Yield each route requested both times, with its responses then and now."""
        for route in self.changes:
            yield route, self.was[route], self.now[route]

    def has_emptied(self, tool: str) -> bool:
        """Return whether a list in the site's responses during a tool's calls is empty now."""
        return any(
            change.what == "empty"
            for route, was, now in self.known()
            if tool in was.tools or tool in now.tools
            for change in self.changes[route]
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
        route: changes(shape_of(*responses.samples), shape_of(*now[route].samples))
        for route, responses in was.items()
        if route in now
    }
    replaced = {secret.replacement for each in recordings for secret in each.scrubbed}
    return ComparedSite(before, was, now, changed, replaced - {""})


def _joined(parts: Sequence[Mapping[Route, Responses]]) -> Mapping[Route, Responses]:
    """Return the responses of several recordings as one."""
    whole: dict[Route, Responses] = {}
    for part in parts:
        for route, responses in part.items():
            whole.setdefault(route, Responses()).add(responses)
    return whole
