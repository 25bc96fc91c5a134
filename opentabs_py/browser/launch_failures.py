"""Why Chromium did not start, from what Playwright says of it."""

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_NO_SANDBOX: Final = (
    "No usable sandbox",
    "Failed to move to new namespace",
    "The SUID sandbox helper binary was found, but is not configured correctly",
)
_FULL: Final = 2**20  # bytes; on a disk with less free, a browser cannot write even its profile
_LIMITS: Final = {
    "too many open files. Raise the limit: ulimit -n 4096.": ("Too many open files", "EMFILE"),
    "too many processes or threads. Raise the limit: ulimit -u, that of the container (docker run "
    "--pids-limit), or TasksMax of the systemd unit.": (
        "Resource temporarily unavailable",
        "EAGAIN",
    ),
}


def why_not_started(chromium: Path, text: str, *, headed: bool) -> str:
    """Return why a launch failed, and what to do.

    Args:
        chromium: The executable.
        text: Playwright's message.
        headed: Whether it was to show a window.
    """
    if headed and ("DISPLAY" in text or "headless" in text):
        return (
            f"{chromium} found no display to show a window on. Omit --headed, if you passed it, or "
            "use a virtual display: xvfb-run -a."
        )
    if any(each in text for each in _NO_SANDBOX):
        return (
            f"{chromium} cannot create its sandbox: this system does not allow it user "
            "namespaces. Any one of these is enough:\n"
            "  sudo sysctl -w kernel.unprivileged_userns_clone=1             Debian\n"
            "  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 Ubuntu\n"
            "  a seccomp profile that allows clone and unshare               a container\n"
            "  export OPENTABS_NO_SANDBOX=1    no sandbox: only for pages that you trust"
        )
    if "ProcessSingleton" in text or "user data directory is already in use" in text:
        return "The profile is in use by another browser. Close it, or choose another profile."
    if "doesn't exist at" in text and "ffmpeg-" in text:
        return (
            "Recording a video needs ffmpeg, which is not installed. Install your system's "
            "(Debian, Ubuntu: sudo apt install ffmpeg) or Playwright's (playwright install "
            "ffmpeg), or leave out --video."
        )
    if (limit := _limit_hit(text)) is not None:
        return f"{chromium} did not start: {limit}"
    first = text.strip().splitlines()[0]
    return f"{chromium} did not start: {first}. Is it a Chromium? Check its --version output."


def why_not_connected(directories: Iterable[Path], within: float) -> str:
    """Return why the extension of a browser that runs has not connected, and what to do.

    Args:
        directories: Where the browser writes.
        within: How long it had, in seconds.
    """
    text = f"The extension did not connect within {within:g} s of the browser's start."
    for directory in directories:
        disk = shutil.disk_usage(directory)
        if disk.free < _FULL <= disk.total:
            return f"{text} The disk of {directory} is full: free some space there."
    return f"{text} Branded Chrome and Edge refuse to load it; run `opentabs doctor`."


def _limit_hit(text: str) -> str | None:
    """Return which resource limit of this process ended the browser, if any, and what to do."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 (not everywhere)

    for hit, signs in _LIMITS.items():
        if any(each in text for each in signs):
            return hit
    for limit, option in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        allowed = resource.getrlimit(limit)[0]
        if "signal=SIG" in text and allowed != resource.RLIM_INFINITY:
            return (
                f"it crashed. Only {allowed / 2**30:.1f} GiB of memory may be reserved, but it "
                f"reserves much more than it uses. Lift the limit: ulimit {option} unlimited."
            )
    return None
