"""What a client reads while its call waits in an endpoint's queue."""

from opentabs_py.calling.observer import progress_observers
from opentabs_py.calling.tool import ToolCall
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport, WaitReport
from opentabs_py.fleet.place import PlaceInQueue


def test_a_call_says_its_place_whenever_that_changes() -> None:
    said: list[ProgressReport] = []
    place = PlaceInQueue(ToolCall({}, Limits(), observers=progress_observers(said.append)))
    for ahead in (3, 3, 1, 0):
        place.say(ahead)
    assert [report.message for report in said] == [
        "All workers are full; 3 calls are ahead of this one.",
        "All workers are full; 1 call is ahead of this one.",
        "All workers are full; this call is next.",
    ]
    assert all(isinstance(report, WaitReport) for report in said)
