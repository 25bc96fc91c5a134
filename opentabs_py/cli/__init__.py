"""The command line: one file per command."""

import os
import signal
import sys
from types import FrameType

from opentabs_py.cli import collector
from opentabs_py.cli.codes import CHAIN_FAILED, INTERRUPTED, USAGE
from opentabs_py.errors import (
    CallRefusedError,
    ConfigError,
    OpenTabsError,
    PluginError,
    TraceError,
)


def main() -> None:
    """Run the command line and exit with its code."""
    # Until an event loop takes signals, there is nothing to clean up. A KeyboardInterrupt would not
    # do: raised in a callback of what is being loaded, it is ignored, and the command goes on.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored: nohup
        signal.signal(signal.SIGINT, _end_at_once)
    collector.expect_much()
    try:
        _run()
    except BrokenPipeError:
        # Who read our stdout has seen enough: `opentabs demo | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        collector.settle()


def _end_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _run() -> None:
    # Loaded here, for Ctrl-C while it is.
    from opentabs_py.cli.app import app
    from opentabs_py.cli.terminal import guard_log, tell_error

    guard_log()
    try:
        sys.exit(app(standalone_mode=True))
    except OpenTabsError as error:
        tell_error(error)
        usage = isinstance(error, CallRefusedError | ConfigError | PluginError | TraceError)
        sys.exit(USAGE if usage else CHAIN_FAILED)
