"""The calls of a server that run now, each of which can be ended."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from opentabs_py.calling.call import Cancellation, ToolCall
from opentabs_py.core import failures
from opentabs_py.errors import CallError


@dataclass(slots=True)
class _Running:
    """A running call of a tool, and the error that ended it, if its caller did not."""

    tool: str
    cancellation: Cancellation
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    error: CallError | None = None


class RunningCalls:
    """The calls that run now, or wait for the user to allow them, by their ids."""

    def __init__(self) -> None:
        self._calls: dict[str, _Running] = {}
        self._is_stopped = False

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._calls)

    def __contains__(self, call_id: str) -> bool:
        """Return whether a call runs."""
        return call_id in self._calls

    def cancel(self, call_id: str, *, by: str) -> bool:
        """End a running call; its tool is notified, and its caller receives an error.

        Args:
            call_id: The call's id.
            by: Who ends it, for example "the user, in the console".

        Returns:
            Whether it was running.
        """
        return self.end(call_id, failures.cancelled_by(by), reason=f"cancelled by {by}")

    def end(self, call_id: str, error: CallError, *, reason: str) -> bool:
        """End a running call with an error; its tool is notified.

        Args:
            call_id: The call's id.
            error: What its caller receives.
            reason: What its tool receives.

        Returns:
            Whether it was running.
        """
        running = self._calls.get(call_id)
        if running is None:
            return False
        if running.error is None:
            running.error, running.cancellation.reason = error, reason
            running.scope.cancel()
        return True

    def stop(self) -> None:
        """End all running calls, and refuse later ones, because the server stops."""
        self._is_stopped = True
        for call_id, running in self._calls.items():
            has_begun = not running.cancellation.comes_in_time
            error = failures.server_stopped(running.tool, has_begun=has_begun)
            self.end(call_id, error, reason="the server stopped")

    @contextmanager
    def add(self, tool: str, call: ToolCall) -> Generator[None]:
        """Hold a call that runs in this context, and can be ended meanwhile.

        Args:
            tool: The tool's name.
            call: The call.

        Raises:
            CallError: What ended it.
        """
        if self._is_stopped:
            raise failures.server_stopped(tool, has_begun=False)
        running = self._calls[call.call_id] = _Running(tool, call.cancellation)
        try:
            with running.scope:
                yield
        except Exception as error:
            if running.error is not None:  # its tool has made this of the cancellation
                raise running.error from error
            raise
        finally:
            del self._calls[call.call_id]
        if running.error is not None:
            raise running.error
