"""The command line: its commands are in `commands/`, what they share is here."""

import errno
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from io import TextIOWrapper, UnsupportedOperation
from types import FrameType
from typing import Any, cast

from opentabs_py.cli import collector
from opentabs_py.cli.exit_codes import CHAIN_FAILED, INTERRUPTED, code_of

_CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
_NO_THREAD = "can't start new thread"  # what Python says in a RuntimeError


def main() -> None:
    """Run the command line and exit with its code."""
    _open_closed_streams()
    _write_utf8()
    # Until an event loop handles signals, there is nothing to clean up. A KeyboardInterrupt would
    # not work: raised in a callback during an import, it is ignored, and the command continues.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # nohup ignores it instead
        signal.signal(signal.SIGINT, _end_at_once)
    collector.expect_much()
    try:
        _write_all()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except (OSError, ExceptionGroup) as failure:  # a group, if a task was writing
        error = _only(failure)
        if not isinstance(error, OSError) or not _is_unwritable(error):
            raise
        # Otherwise flushing the remaining output fails again when the process exits.
        with suppress(UnsupportedOperation):  # the output is the log
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_report_unwritable(error))
    finally:
        collector.freeze()


def _open_closed_streams() -> None:
    """Open the null device as each standard stream that is closed, as by `opentabs call X <&-`.

    Otherwise the next file that is opened gets its number: libuv refuses to run then, and so do
    programs that we start.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            os.set_inheritable(opened, True)
            setattr(sys, name, os.fdopen(opened, mode, closefd=False))


def _write_utf8() -> None:
    """Write UTF-8 whatever the locale: few other encodings have all characters of results."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=stream.errors)


def _end_at_once(_number: int, _frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _write_all() -> None:
    try:
        _run()
    finally:
        sys.stdout.flush()  # a failure here is handled; one at process exit is not


def _only(failure: Exception) -> Exception | None:
    """Return the only exception that was raised, however deeply it is nested in groups."""
    while isinstance(failure, ExceptionGroup):
        first, *others = cast("ExceptionGroup[Exception]", failure).exceptions
        if others:
            return None
        failure = first
    return failure


def _is_unwritable(error: OSError) -> bool:
    return isinstance(error, BrokenPipeError) or error.errno in _CANNOT_WRITE


def _report_unwritable(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        return 0  # the reader of our stdout has seen enough: `opentabs demo | head`
    where = f" to {error.filename}" if error.filename else ""
    with suppress(OSError):
        sys.stderr.write(f"error: Cannot write{where}: {error.strerror}. Free some space there.\n")
    return CHAIN_FAILED


def _run() -> None:
    # Imported here, so that Ctrl-C works during the import.
    from opentabs_py.cli.deferred_packages import LARGE, defer_packages

    defer_packages(*LARGE)
    from opentabs_py.cli.app import create_app
    from opentabs_py.cli.log import guard_log
    from opentabs_py.errors import OpenTabsError

    guard_log()
    app = create_app(sys.argv[1] if len(sys.argv) > 1 else None)
    try:
        _run_app(app)
    except OpenTabsError as error:
        from opentabs_py.cli.terminal import print_error

        print_error(error)
        sys.exit(code_of(error))


def _run_app(app: Callable[..., Any]) -> None:
    try:
        sys.exit(app(standalone_mode=True))
    except SystemExit as ending:
        # Typer exits with 1 when the reader of our stdout is gone, before `main` sees the error.
        if isinstance(ending.__context__, BrokenPipeError):
            raise ending.__context__ from None
        raise
    except (OSError, RuntimeError, ExceptionGroup) as failure:
        error = _only(failure)
        if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
            from opentabs_py.errors import BrowserError

            raise BrowserError(
                "Cannot start a thread: too many processes or threads, or too little memory. Raise "
                "the limit: ulimit -u, that of the container (docker run --pids-limit), or "
                "TasksMax of the systemd unit."
            ) from None
        if isinstance(error, FileNotFoundError):
            from opentabs_py.config.paths import working_dir

            working_dir()  # which raises a better error if that is what is missing
        if isinstance(error, OSError) and error.filename and (why := _why_unopened(error)):
            from opentabs_py.errors import ConfigError

            raise ConfigError(f"Cannot open {error.filename}: {why}") from None
        raise


def _why_unopened(error: OSError) -> str | None:
    """Return why the user has to make way for one of our files, and how; None if they need not."""
    if isinstance(error, PermissionError):
        return (
            f"{error.strerror}. If opentabs once ran with sudo, the file may belong to root: make "
            "it yours again, or remove it."
        )
    if error.errno == errno.ELOOP:
        return "it is a symbolic link. Remove it; opentabs creates the file itself."
    return None
