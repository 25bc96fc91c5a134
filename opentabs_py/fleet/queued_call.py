"""Progress of a queued fleet call."""

from dataclasses import replace

from opentabs_py.calling.call import ToolCall
from opentabs_py.core.fleet.messages import Logs, Progress, Sent, ToEndpoint
from opentabs_py.core.progress import WaitReport
from opentabs_py.core.text import quantity


class QueuedCall:
    """Passes on what a worker says of a call, and before that, the call's place in the queue.

    Args:
        call: The call.
    """

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self._said = 0
        self._shown: tuple[int, int | None] | None = None

    def say(self, ahead: int, running: int | None = None) -> None:
        """Report how many calls come before this one, and why it waits, if that has changed.

        Args:
            ahead: How many come before it.
            running: How many calls its client runs, if it may run no more.
        """
        if (ahead, running) == self._shown:
            return
        self._shown = (ahead, running)
        why = "All workers are full"
        if running is not None:
            why = f"This client already has {quantity(running, 'call')} running, which is its limit"
        others = f"{ahead} calls are" if ahead != 1 else "1 call is"
        place = f"{others} ahead of this one" if ahead else "this call is next"
        report = WaitReport(self._said, message=f"{why}; {place}.")
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
