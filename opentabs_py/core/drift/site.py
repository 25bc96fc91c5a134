"""The answers of a site, then and now."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from opentabs_py.core.drift.answers import Answers, answers_of
from opentabs_py.core.recording.exchange import Recording
from opentabs_py.core.shapes.change import Change
from opentabs_py.core.shapes.changes import changes
from opentabs_py.core.shapes.endpoints import Endpoint
from opentabs_py.core.shapes.shape import shape_of


@dataclass(frozen=True, slots=True)
class Site:
    """The answers of a site, then and now; see `compare_site`.

    Attributes:
        before: The answers of each recording.
        was: The answers of all recordings.
        now: The answers of this run.
        changes: How the JSON of the endpoints that were asked both times has changed.
        replaced: What the recordings have in place of secrets.
    """

    before: Sequence[Mapping[Endpoint, Answers]]
    was: Mapping[Endpoint, Answers]
    now: Mapping[Endpoint, Answers]
    changes: Mapping[Endpoint, Sequence[Change]]
    replaced: Collection[str]

    def known(self) -> Iterable[tuple[Endpoint, Answers, Answers]]:
        """Yield what was asked both times, and its answers then and now."""
        for endpoint in self.changes:
            yield endpoint, self.was[endpoint], self.now[endpoint]

    def has_emptied(self, tool: str) -> bool:
        """Return whether a list that the site answers during a tool's calls is empty now."""
        return any(
            change.what == "empty"
            for endpoint, was, now in self.known()
            if tool in was.tools or tool in now.tools
            for change in self.changes[endpoint]
        )


def compare_site(
    recordings: Sequence[Recording], traffic: Recording, volatile: Sequence[str] = ()
) -> Site:
    """Return the answers of a site in some recordings, and in a run.

    Args:
        recordings: What was recorded.
        traffic: What passed in the run.
        volatile: Names of members of requests that do not count.
    """
    before = [answers_of(each, volatile) for each in recordings]
    was, now = _joined(before), answers_of(traffic, volatile)
    changed = {
        endpoint: changes(shape_of(*answers.samples), shape_of(*now[endpoint].samples))
        for endpoint, answers in was.items()
        if endpoint in now
    }
    replaced = {secret.replacement for each in recordings for secret in each.scrubbed}
    return Site(before, was, now, changed, replaced - {""})


def _joined(parts: Sequence[Mapping[Endpoint, Answers]]) -> Mapping[Endpoint, Answers]:
    """Return the answers of several recordings as one."""
    whole: dict[Endpoint, Answers] = {}
    for part in parts:
        for endpoint, answers in part.items():
            into = whole.setdefault(endpoint, Answers())
            into.statuses |= answers.statuses
            into.media |= answers.media
            for key, values in answers.values.items():
                into.values.setdefault(key, []).extend(values)
            into.marks += answers.marks
            into.tools += answers.tools
            into.is_document |= answers.is_document
            into.failures |= answers.failures
    return whole
