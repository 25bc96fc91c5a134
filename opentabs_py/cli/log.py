"""The log on stderr."""

import logging
import os
import sys

from opentabs_py.calling.plugin_log import PLUGINS, SafeFormatter


def guard_log() -> None:
    """Escape control characters in warnings of commands that do not configure logging."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(SafeFormatter("%(message)s"))


def log_to_stderr(*, level: int = logging.INFO) -> None:
    """Show our log on stderr, and other libraries' from WARNING up; plain lines if not a terminal.

    Plugin logs are shown from INFO up.
    """
    handler = _terminal_handler()
    if handler is not None:
        logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(SafeFormatter("%(asctime)s %(levelname)s %(message)s"))
        logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("opentabs_py").setLevel(level)
    logging.getLogger(PLUGINS).setLevel(min(level, logging.INFO))


def _terminal_handler() -> logging.Handler | None:
    """Return what writes to a terminal; None without one, and then Rich is not imported."""
    may_be_terminal = sys.stderr.isatty() or os.environ.keys() & {"FORCE_COLOR", "TTY_COMPATIBLE"}
    if not may_be_terminal:
        return None
    from rich.logging import RichHandler

    from opentabs_py.cli.terminal import err

    if not err.is_terminal:
        return None
    return RichHandler(console=err, show_path=False, log_time_format="%H:%M:%S")
