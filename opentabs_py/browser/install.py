"""Install a Chromium: Playwright's download, or else the package of Debian and its derivatives."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opentabs_py.browser.chromium import BY_HAND, VARIABLE, Chromium, find_chromium
from opentabs_py.browser.switches import is_root
from opentabs_py.errors import BrowserError

DOWNLOAD_LIMIT = 1200.0  # s; 180 MB at 150 KB/s
APT_LIMIT = 1200.0  # s; about the same, including unpacking
PROBE_LIMIT = 30.0  # s; `--version` of a cold Chromium on a slow disk takes 3
CONNECTION_LIMIT = "10000"  # ms; Playwright's default is 30 s, five times: a long wait when offline

_APT_PACKAGES = ("chromium", "chromium-browser")  # Debian's name, then Ubuntu's
_APT_OPTIONS = ("-q", "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=60")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_PROGRESS = re.compile(r"Downloading |\||Get:\d|Setting up chromium")
# The actual cause: Playwright wraps its errors twice.
_CAUSE = re.compile(r"(?:Error|E): (?!Failed to download|Download failure)")


def install_chromium(
    report: Callable[[str], None],
    *,
    environ: Mapping[str, str] = os.environ,
    as_root: bool | None = None,
) -> Chromium:
    """Return a Chromium that can load the extension, installing one if necessary.

    Args:
        report: Called with each line of progress output.
        environ: The environment to search, and to run the installers in.
        as_root: Whether this process may install packages; by default, whether it runs as root.

    Raises:
        BrowserError: Nothing could be installed, or what was installed does not start. The
            text says what was tried, why each attempt failed, and what to do.
    """
    if environ.get(VARIABLE):
        return find_chromium(environ=environ)  # the user chose; report if the choice is wrong
    try:
        return find_chromium(environ=environ)
    except BrowserError:
        report("No Chromium found; installing one.")
    failures: list[str] = []
    for attempt in _attempts(environ, as_root=is_root() if as_root is None else as_root):
        failure = _try(attempt, report, environ)
        if failure is None:
            found = find_chromium(environ=environ)
            report(f"Chromium is at {found.path}")
            return found
        report(f"{attempt.name}: {failure}")
        failures.append(f"  {attempt.name}: {failure}")
    raise BrowserError(
        "\n".join(
            [
                "Could not install Chromium. Tried:",
                *failures,
                "Fix the cause and run `opentabs browser install` again, or:",
                BY_HAND,
            ]
        )
    )


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A way to install Chromium.

    Attributes:
        name: What a user would type.
        commands: Run in turn, until one fails.
        limit: The longest each may take, in seconds.
        impossible: Why there is no point in trying, or None.
    """

    name: str
    commands: Sequence[Sequence[str]]
    limit: float
    impossible: str | None = None


def _attempts(environ: Mapping[str, str], *, as_root: bool) -> list[_Attempt]:
    download = (sys.executable, "-P", "-m", "playwright", "install", "--no-shell", "chromium")
    attempts = [_Attempt("playwright install chromium", [download], DOWNLOAD_LIMIT)]
    apt_get = shutil.which("apt-get", path=environ.get("PATH", ""))
    if apt_get is None:
        return attempts
    privilege = _privilege(environ, as_root=as_root)
    impossible = None if privilege is not None else "needs root, or sudo without a password"
    command = (*(privilege or ()), apt_get)
    update = (*command, "update", *_APT_OPTIONS)
    for package in _APT_PACKAGES:
        install = (*command, "install", "-y", "--no-install-recommends", *_APT_OPTIONS, package)
        name = f"apt-get install {package}"
        attempts.append(_Attempt(name, [update, install], APT_LIMIT, impossible))
    return attempts


def _privilege(environ: Mapping[str, str], *, as_root: bool) -> tuple[str, ...] | None:
    """Return the prefix that makes a command run as root, or None if there is none."""
    if as_root:
        return ()
    sudo = shutil.which("sudo", path=environ.get("PATH", ""))
    if sudo is None:
        return None
    prefix = (sudo, "-n")
    asked = run((*prefix, "true"), environ, limit=PROBE_LIMIT)
    return prefix if asked is None else None


def _try(
    attempt: _Attempt, report: Callable[[str], None], environ: Mapping[str, str]
) -> str | None:
    """Make an attempt; return why there is still no Chromium that starts, or None."""
    if attempt.impossible is not None:
        return f"not tried: {attempt.impossible}"
    report(f"Running {attempt.name}")
    patient = {
        "PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": CONNECTION_LIMIT,
        **environ,
        "DEBIAN_FRONTEND": "noninteractive",
    }

    passed_on = ""

    def on_line(line: str) -> None:
        nonlocal passed_on
        if line != passed_on and _PROGRESS.match(line):  # Playwright repeats itself on each try
            passed_on = line
            report(f"  {line}")

    for command in attempt.commands:
        failure = run(command, patient, limit=attempt.limit, on_line=on_line)
        if failure is not None:
            return failure
    try:
        found = find_chromium(environ=environ)
    except BrowserError:
        return "succeeded, but Chromium is not in any expected place"
    return _why_it_does_not_start(found.path, environ)


def _why_it_does_not_start(chromium: Path, environ: Mapping[str, str]) -> str | None:
    if sys.platform == "win32":
        return None  # `--version` opens a window there
    failure = run((str(chromium), "--version"), environ, limit=PROBE_LIMIT)
    return None if failure is None else f"{chromium} was installed but does not start: {failure}"


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    limit: float,
    on_line: Callable[[str], None] = lambda _: None,
) -> str | None:
    """Run a command, forwarding its output line by line; return why it failed, or None.

    After `limit` seconds, or if `on_line` raises, it is killed with all its children.
    """
    try:
        process = subprocess.Popen(
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # so that its children can be killed with it
        )
    except OSError as error:
        return str(error)
    overdue = threading.Event()

    def end_overdue() -> None:
        overdue.set()
        _end(process)

    timer = threading.Timer(limit, end_overdue)
    timer.start()
    lines: list[str] = []
    try:
        for raw in process.stdout or ():
            line = _ANSI.sub("", raw).rstrip()
            lines.append(line)
            on_line(line)
        process.wait()
    except BaseException:
        _end(process)  # interrupted by the user, or by `on_line`
        raise
    finally:
        timer.cancel()
        timer.join()
        process.communicate()
    if overdue.is_set():
        return f"took longer than {limit:g} s"
    if process.returncode == 0:
        return None
    return _last_error(lines) or f"exit code {process.returncode}, without any output"


def _end(process: subprocess.Popen[str]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    # It may have exited already, or belong to root (sudo); apt then has its own limits.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_error(lines: Sequence[str]) -> str | None:
    """Return the most informative line of a failed command's output."""
    printed = [line.strip() for line in lines if line.strip()]
    causes = [line for line in printed if _CAUSE.match(line)]
    return next(reversed(causes or printed), None)
