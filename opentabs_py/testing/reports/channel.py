"""The channel from a run to the page of `opentabs test --ui`: sends at once or in the background.

Tests never wait for it. Without a reader, events are dropped and counted.
"""

import os
import socket
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from time import monotonic
from typing import Final

from opentabs_py.core.runner import PLAN
from opentabs_py.core.runner.events import (
    Event,
    Lost,
    Plan,
    Resume,
    SetPauseOnFailure,
    read_command,
    to_line,
)
from opentabs_py.core.runner.lines import LONGEST_LINE, Lines

MOST_WAITING: Final = 64 * 1024 * 1024  # bytes
FLUSH_WITHIN: Final = 2.0  # s; a reader that reads at all needs milliseconds


class RunnerChannel:
    """The way to the runner and back.

    Args:
        plan: What this run is for; its socket is closed with the channel.

    Attributes:
        plan: What this run is for.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._pauses = plan.pauses
        self._resumed: set[int] = set()
        self._socket = socket.socket(fileno=plan.socket)
        self._socket.set_inheritable(False)  # a browser that outlives us must not keep it open
        self._lines = Lines()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._is_open = True
        self._changed = Condition()
        self._writer = Thread(target=self._write, name="opentabs-channel", daemon=True)
        self._writer.start()

    def send(self, event: Event) -> None:
        """Send an event, from any thread."""
        line = to_line(event)
        with self._changed:
            fits = len(line) <= LONGEST_LINE and self._size + len(line) <= MOST_WAITING
            if not (fits and self._is_open):
                self._lost += 1
                return
            if not (self._waiting or self._lost):
                # At once, for a test can end the process.
                line = line[self._send_now(line) :]
            if line:
                self._waiting.append(line)
                self._size += len(line)
                self._changed.notify_all()

    def _send_now(self, line: bytes) -> int:
        """Send as much of a line as is taken without waiting, and return how much that is."""
        try:
            return self._socket.send(line, socket.MSG_DONTWAIT)
        except OSError:  # the writer finds out why
            return 0

    def is_to_pause(self) -> bool:
        """Return whether the browser is kept open at a failure, as the runner has said last."""
        self._handle_commands()
        return self._pauses and self._is_open

    def is_to_resume(self, pause: int) -> bool:
        """Return whether a pause at a failure is over; the runner may also be gone."""
        return not self.is_to_pause() or pause in self._resumed

    def close(self) -> None:
        """Send what is waiting, if it is read soon, and close the channel."""
        until = monotonic() + FLUSH_WITHIN
        with self._changed:
            while self._is_open and self._size and (left := until - monotonic()) > 0:
                self._changed.wait(left)
            self._is_open = False
            self._changed.notify_all()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _handle_commands(self) -> None:
        try:
            data = self._socket.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:  # there is none
            return
        except OSError:
            data = b""
        if not data:
            self._give_up()
        for line in self._lines.feed(data):
            match read_command(line):
                case Resume(pause=pause):
                    self._resumed.add(pause)
                case SetPauseOnFailure(pauses=pauses):
                    self._pauses = pauses
                case None:
                    pass

    def _write(self) -> None:
        while True:
            with self._changed:
                while self._is_open and not self._waiting:
                    self._changed.wait()
                if not self._is_open:
                    return
                line = self._waiting[0]
                if self._lost:
                    line += to_line(Lost(count=self._lost))
                    self._lost = 0
            try:
                self._socket.sendall(line)
            except OSError:
                self._give_up()
                return
            with self._changed:
                self._size -= len(self._waiting.popleft())
                self._changed.notify_all()

    def _give_up(self) -> None:
        """Send nothing more, because the runner is gone."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()


def open_channel() -> RunnerChannel:
    """Return the channel to the runner that has started pytest."""
    file = os.environ.pop(PLAN)  # processes that tests start have no part in it
    return RunnerChannel(Plan.model_validate_json(Path(file).read_bytes()))
