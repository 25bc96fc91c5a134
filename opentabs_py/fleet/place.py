"""Progress of a queued fleet call."""

from dataclasses import replace

from opentabs_py.calling.tool import ToolCall
from opentabs_py.core.fleet.messages import Logs, Progress, Sent, ToEndpoint
from opentabs_py.core.progress import WaitReport


class PlaceInQueue:
    """Passes on what a worker says of a call, and before that, the call's place in the queue.

    Args:
        call: The call.
    """

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self._said = 0
        self._ahead: int | None = None

    def say(self, ahead: int) -> None:
        """Report how many calls come before this one, if that has changed."""
        if ahead == self._ahead:
            return
        self._ahead = ahead
        others = f"{ahead} calls are" if ahead != 1 else "1 call is"
        place = f"{others} ahead of this one" if ahead else "this call is next"
        report = WaitReport(self._said, message=f"All workers are full; {place}.")
        self._said += 1
        self._call.notify_progress([report])

    def handle(self, message: ToEndpoint) -> None:
        """Pass on a message of the worker."""
        match message:
            case Sent():
                self._call.notify_sent()
            case Progress(reports=reports):
                if self._said:
                    reports = [replace(each, seq=each.seq + self._said) for each in reports]
                self._call.notify_progress(reports)
            case Logs(entries=entries):
                self._call.notify_log(entries)
            case _:
                pass
