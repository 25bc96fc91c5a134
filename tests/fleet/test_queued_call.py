"""What a client reads while its call waits in an endpoint's queue."""

from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.observer import progress_observers
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport, WaitReport
from opentabs_py.fleet.queued_call import QueuedCall


def said_for(*places: tuple[int, int | None]) -> list[str | None]:
    said: list[ProgressReport] = []
    queued = QueuedCall(ToolCall({}, Limits(), observers=progress_observers(said.append)))
    for ahead, running in places:
        queued.say(ahead, running)
    assert all(isinstance(report, WaitReport) for report in said)
    return [report.message for report in said]


def test_a_call_says_its_place_whenever_that_changes() -> None:
    assert said_for((3, None), (3, None), (1, None), (0, None)) == [
        "All workers are full; 3 calls are ahead of this one.",
        "All workers are full; 1 call is ahead of this one.",
        "All workers are full; this call is next.",
    ]


def test_a_call_says_when_the_quota_of_its_client_is_why_it_waits() -> None:
    assert said_for((0, None), (0, 2), (0, 2)) == [
        "All workers are full; this call is next.",
        "This client already has 2 calls running, which is its limit; this call is next.",
    ]
