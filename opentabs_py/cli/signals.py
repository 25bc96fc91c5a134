"""Signals, for commands that run no event loop."""

import signal
import sys
from types import FrameType


def exit_at_signals() -> None:
    """On SIGINT or SIGTERM, leave by an exception, so that everything opened is closed."""

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGINT
            signal.signal(number, leave)
