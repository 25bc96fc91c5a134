"""Launching Chromium with the extension, through Playwright."""

import json
import os
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Error

from opentabs_py.browser import switches
from opentabs_py.browser.driver import start_driver
from opentabs_py.browser.process import end_browser
from opentabs_py.errors import BrowserError

SOCKET_PATH = 103  # bytes of a Unix socket's path on macOS, 107 on Linux
CLOSE_WITHIN = 0.8  # s; a close takes 0.1 to 0.5 s
STOP_WITHIN = 0.4  # s; with the server's own half second, all ends within two


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How a Chromium with the extension is launched, whoever launches it.

    Attributes:
        chromium: The executable; not branded Chrome or Edge, which refuse extensions.
        extension: The staged extension's directory.
        profile: The user data directory; made when it is not there.
        scratch: A directory for what browser and driver write besides; the caller removes it.
        headed: Show the window.
        sandbox: Whether Chromium has its sandbox.
        keeps_profile: The profile is there to stay, and what people sign in to is in it.
        args: More command-line switches.
        ignore_default_args: Switches of Playwright's to leave out.
    """

    chromium: Path
    extension: Path
    profile: Path
    scratch: Path
    headed: bool = False
    sandbox: bool = True
    keeps_profile: bool = False
    args: Sequence[str] = ()
    ignore_default_args: Sequence[str] = ()

    @property
    def options(self) -> dict[str, Any]:
        """What `launch_persistent_context` is given besides the profile, in either API."""
        return {
            "executable_path": self.chromium,
            "headless": not self.headed,
            "no_viewport": self.headed or None,
            "artifacts_dir": self.scratch / "artifacts",
            "env": _environment(self.scratch),
            "chromium_sandbox": self.sandbox,
            "ignore_default_args": [
                *switches.left_out(keeps_profile=self.keeps_profile),
                *self.ignore_default_args,
            ],
            # Playwright disables extensions by default: both switches are needed.
            "args": [
                f"--load-extension={self.extension}",
                f"--disable-extensions-except={self.extension}",
                *switches.added(keeps_profile=self.keeps_profile),
                *self.args,
            ],
            # Signals are the caller's: who is signalled closes the browser itself.
            "handle_sigint": False,
            "handle_sigterm": False,
            "handle_sighup": False,
        }

    def prepare(self) -> None:
        """Make the profile, with what must be in it before the first start.

        Raises:
            BrowserError: It cannot be written, or another browser uses it.
        """
        if _is_in_use(self.profile):
            raise BrowserError(
                f"The profile {self.profile} is in use by another browser, maybe that of another "
                "`opentabs serve`. Close that one, or give another directory."
            )
        # Without developer mode, `chrome.runtime.reload()` leaves the extension disabled.
        preferences = self.profile / "Default" / "Preferences"
        try:
            if not preferences.exists():
                # Its cookies are for nobody else. What is there already is the user's own affair.
                self.profile.mkdir(mode=0o700, parents=True, exist_ok=True)
                preferences.parent.mkdir(mode=0o700, exist_ok=True)
                preferences.write_text(json.dumps({"extensions": {"ui": {"developer_mode": True}}}))
        except OSError as error:
            raise BrowserError(
                f"{self.profile} cannot be a browser's profile: {error.strerror}. Give a "
                "directory that you can write to."
            ) from error

    def not_started(self, said: str) -> BrowserError:
        """Say what to do about a launch that failed, from what Playwright said."""
        return BrowserError(_why_not_started(self.chromium, said, headed=self.headed))


Planned = Callable[[], Awaitable[LaunchPlan]]
"""Waits for the plan: there is something to start before it is made."""

Launcher = Callable[[Planned], AbstractAsyncContextManager[BrowserContext | None]]
"""Launches a browser as planned, and closes it at the end.

Gives None when the browser is driven elsewhere than in this event loop. Raises `BrowserError`.
"""


@asynccontextmanager
async def launch_browser(planned: Planned) -> AsyncGenerator[BrowserContext]:
    """A running Chromium with the extension in it, as Playwright's context.

    Playwright's driver is started before the plan is waited for.

    Raises:
        BrowserError: It did not start.
    """
    driver = await start_driver()
    plan: LaunchPlan | None = None
    context: BrowserContext | None = None
    closed = False
    try:
        plan = await planned()
        plan.prepare()
        try:
            context = await driver.playwright.chromium.launch_persistent_context(
                plan.profile, **plan.options
            )
        except Error as error:
            if driver.is_gone():
                raise BrowserError(
                    "Playwright's driver died while it started the browser. Try again."
                ) from error
            raise plan.not_started(error.message) from error
        driver.close_with(context)
        yield context
    finally:
        if context is not None:
            # An error means that the driver dies just now.
            with anyio.move_on_after(CLOSE_WITHIN, shield=True), suppress(Error):
                await context.close()
                closed = not driver.is_gone()
        # Ends the driver, and with it a browser that did not close in time.
        with anyio.move_on_after(STOP_WITHIN, shield=True):
            await driver.playwright.stop()
        if plan is not None and not closed:
            await end_browser(plan.extension)


class BackgroundLaunch:
    """A browser on its way, in a task of its own, from before its plan is made.

    Args:
        launcher: Launches it.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._plan: LaunchPlan
        self._planned = anyio.Event()
        self._begin()

    def _begin(self) -> None:
        self._browser = self._launcher(self._wait_planned)
        self._scope = anyio.CancelScope()
        self._done = anyio.Event()
        self._launched = False
        self._context: BrowserContext | None = None
        self._error = BrowserError("The browser's start was cancelled.")

    async def run(self) -> None:
        """Launch it."""
        try:
            with self._scope:
                self._context = await self._browser.__aenter__()
                self._launched = True
        except BrowserError as error:
            self._error = error
        finally:
            self._done.set()

    def go_by(self, plan: LaunchPlan) -> None:
        """Launch it like this."""
        self._plan = plan
        self._planned.set()

    async def result(self) -> BrowserContext | None:
        """Wait until it is there, and give what the launcher gave.

        Raises:
            BrowserError: It did not start.
        """
        await self._done.wait()
        if not self._launched:
            raise self._error
        return self._context

    async def again(self, tasks: TaskGroup) -> BrowserContext | None:
        """Close what is left of it, launch it as before, and return what the launcher gave.

        Raises:
            BrowserError: It did not start.
        """
        await self.close()
        self._begin()
        tasks.start_soon(self.run)
        return await self.result()

    async def close(self) -> None:
        """Close it, or end its launch, and wait until it is gone."""
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._done.wait()
        if self._launched:
            self._launched = False
            await self._browser.__aexit__(None, None, None)

    async def _wait_planned(self) -> LaunchPlan:
        await self._planned.wait()
        return self._plan


def _is_in_use(profile: Path) -> bool:
    """Return whether a Chromium runs with a profile: it would open a tab there, and end."""
    if sys.platform == "win32":
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(os.path.realpath(profile / "SingletonSocket"))
        except OSError:
            return False
    return True


def _environment(scratch: Path) -> dict[str, str | float | bool]:
    # What a browser that is killed leaves behind goes with the directory. Chromium puts a socket
    # there, and a socket's path is short.
    longest = scratch / "org.chromium.Chromium.XXXXXX" / "SingletonSocket"
    if len(os.fsencode(longest)) > SOCKET_PATH:
        return {**os.environ}
    return {**os.environ, "TMPDIR": str(scratch)}


def _limit_hit(text: str) -> str | None:
    """Return which limit of this process ended the browser, if one did, and what to do."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 (not everywhere)

    if "Too many open files" in text:
        return "too many files were open. Raise the limit: ulimit -n 4096."
    for limit, option in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        allowed = resource.getrlimit(limit)[0]
        if "signal=SIG" in text and allowed != resource.RLIM_INFINITY:
            return (
                f"it crashed, where only {allowed / 2**30:.1f} GiB of memory may be reserved, "
                f"and it reserves much more than it uses. Lift that: ulimit {option} unlimited."
            )
    return None


def _why_not_started(chromium: Path, text: str, *, headed: bool) -> str:
    if headed and ("DISPLAY" in text or "headless" in text):
        return (
            f"{chromium} found no screen to show a window on. Leave out --headed, or run this "
            "under a virtual screen: xvfb-run -a."
        )
    if "No usable sandbox" in text or "Failed to move to new namespace" in text:
        return (
            f"{chromium} cannot make its sandbox: this system does not let it have user "
            "namespaces. Any one of these is enough:\n"
            "  sudo sysctl -w kernel.unprivileged_userns_clone=1             Debian\n"
            "  sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 Ubuntu\n"
            "  a seccomp profile that allows clone and unshare               a container\n"
            "  export OPENTABS_NO_SANDBOX=1    no sandbox: only for pages that you trust"
        )
    if "ProcessSingleton" in text or "user data directory is already in use" in text:
        return "The profile is in use by another browser. Close that one, or take another profile."
    if "doesn't exist at" in text and "ffmpeg-" in text:
        return (
            "Recording a video needs ffmpeg, and there is none. Install your system's (Debian, "
            "Ubuntu: sudo apt install ffmpeg) or Playwright's own (playwright install ffmpeg), or "
            "leave out --video."
        )
    if (limit := _limit_hit(text)) is not None:
        return f"{chromium} did not start: {limit}"
    first = text.strip().splitlines()[0]
    return f"{chromium} did not start: {first}. Is it a Chromium? See what it says to --version."
