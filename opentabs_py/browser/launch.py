"""Launch Chromium with the extension, through Playwright."""

import json
import logging
import os
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Error

from opentabs_py.browser import switches
from opentabs_py.browser.driver import FAILURES, Driver, SharedDriver
from opentabs_py.browser.process import end_browser, memory_of
from opentabs_py.directories import create_private
from opentabs_py.errors import BrowserError

logger = logging.getLogger(__name__)

SOCKET_PATH = 103  # bytes of a Unix socket's path on macOS, 107 on Linux
CLOSE_WITHIN = 0.8  # s; closing takes 0.1 to 0.5 s


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """How to launch a Chromium with the extension, independent of the launcher.

    Attributes:
        chromium: The executable; not branded Chrome or Edge, which refuse extensions.
        extension: The staged extension's directory; None to launch without it.
        profile: The user data directory; created if missing.
        scratch: A directory for the other files of browser and driver; the caller removes it.
        headed: Show the window.
        sandbox: Whether Chromium runs with its sandbox.
        keeps_profile: Whether the profile is permanent and contains the user's sign-ins.
        args: More command-line switches.
        ignore_default_args: Playwright switches to leave out.
        features: Features of Chromium to turn on.
    """

    chromium: Path
    extension: Path | None
    profile: Path
    scratch: Path
    headed: bool = False
    sandbox: bool = True
    keeps_profile: bool = False
    args: Sequence[str] = ()
    ignore_default_args: Sequence[str] = ()
    features: Sequence[str] = ()

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of `launch_persistent_context`, in either API, without the profile."""
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
                *self._extension_switches(),
                *switches.added(
                    keeps_profile=self.keeps_profile,
                    headed=self.headed,
                    features=self.features,
                    args=self.args,
                ),
            ],
            # The caller handles signals, and closes the browser itself.
            "handle_sigint": False,
            "handle_sigterm": False,
            "handle_sighup": False,
        }

    def _extension_switches(self) -> Sequence[str]:
        if self.extension is None:
            return ()
        return (
            f"--load-extension={self.extension}",
            f"--disable-extensions-except={self.extension}",
        )

    def prepare(self) -> None:
        """Create the profile, with what it must contain before the first start.

        Raises:
            BrowserError: It is not writable, or another browser uses it.
        """
        if is_in_use(self.profile):
            raise BrowserError(
                f"The profile {self.profile} is in use by another browser, perhaps that of another "
                "`opentabs serve`. Close that browser, or choose another directory."
            )
        # Without developer mode, `chrome.runtime.reload()` leaves the extension disabled.
        preferences = self.profile / "Default" / "Preferences"
        try:
            if not preferences.exists():
                # Its cookies are private. The mode of an existing directory is the user's choice.
                create_private(self.profile)
                preferences.parent.mkdir(mode=0o700, exist_ok=True)
                preferences.write_text(json.dumps({"extensions": {"ui": {"developer_mode": True}}}))
        except OSError as error:
            raise BrowserError(
                f"Cannot use {self.profile} as a browser profile: {error.strerror}. Choose a "
                "directory that you can write to."
            ) from error

    def not_started(self, output: str) -> BrowserError:
        """Return the error for a failed launch, with advice derived from Playwright's message."""
        return BrowserError(_why_not_started(self.chromium, output, headed=self.headed))


Planned = Callable[[], Awaitable[LaunchPlan]]
"""Waits for the plan; a launcher can start other things before it is ready."""

Launcher = Callable[[Planned], AbstractAsyncContextManager[BrowserContext | None]]
"""Launches a browser as planned, and closes it at the end.

Yields None if the browser is driven outside this event loop. Raises `BrowserError`.
"""


@asynccontextmanager
async def launch_browser(
    planned: Planned, *, shared: SharedDriver | None = None
) -> AsyncGenerator[BrowserContext]:
    """Run a Chromium with the extension, as a Playwright context.

    Starts Playwright's driver before waiting for the plan.

    Args:
        planned: Waits for the plan.
        shared: The driver that it shares with other browsers, if it does.

    Raises:
        BrowserError: It did not start.
    """
    plan: LaunchPlan | None = None
    try:
        async with (shared or SharedDriver()).use() as driver:
            plan = await planned()
            plan.prepare()
            context = await _launch(driver, plan)
            try:
                yield context
            finally:
                # An error means that the driver has just died.
                with anyio.move_on_after(CLOSE_WITHIN, shield=True), suppress(*FAILURES):
                    await context.close()
    finally:
        if plan is not None:
            await end_browser(plan.scratch)  # if it did not close in time


async def _launch(driver: Driver, plan: LaunchPlan) -> BrowserContext:
    try:
        context = await driver.playwright.chromium.launch_persistent_context(
            plan.profile, **plan.options
        )
    except FAILURES as error:
        if driver.is_gone() or not isinstance(error, Error):
            raise BrowserError(
                "Playwright's driver died while starting the browser. Try again."
            ) from error
        raise plan.not_started(error.message) from error
    except anyio.get_cancelled_exc_class():
        # It might still start the browser. The session ends, and so do its other browsers.
        await driver.stop()
        raise
    driver.close_with(context)
    return context


class BackgroundLaunch:
    """Launches a browser in its own task, starting before its plan is ready.

    Args:
        launcher: Launches the browser.
        tasks: Tasks that run until the browser is closed.
    """

    def __init__(self, launcher: Launcher, tasks: TaskGroup) -> None:
        self._launcher = launcher
        self._tasks = tasks
        self._plan: LaunchPlan
        self._planned = anyio.Event()
        self._begin()

    def _begin(self) -> None:
        self._scope = anyio.CancelScope()  # of the launch, and then of the running browser
        self._settled = anyio.Event()  # it is running, or did not start
        self._closing = anyio.Event()
        self._ended = anyio.Event()
        self._launched = False
        self._context: BrowserContext | None = None
        self._error: Exception = BrowserError("The browser's start was cancelled.")
        self._tasks.start_soon(self._run)

    async def _run(self) -> None:
        # One task enters and leaves the launcher: it may contain task groups and timeouts.
        try:
            with self._scope:
                async with self._launcher(self._wait_planned) as self._context:
                    self._launched = True
                    self._scope.shield = True  # from now on, only `close` ends it
                    self._settled.set()
                    await self._closing.wait()
        except Exception as error:
            self._error = error
            if self._launched:
                logger.warning("Closing the browser failed: %s", error, exc_info=error)
        finally:
            self._settled.set()
            self._ended.set()

    def set_plan(self, plan: LaunchPlan) -> None:
        """Set the plan, so that the launch can proceed."""
        self._plan = plan
        self._planned.set()

    async def result(self) -> BrowserContext | None:
        """Wait until the browser is running, and return what the launcher yielded.

        Raises:
            BrowserError: It did not start.
        """
        await self._settled.wait()
        if self._launched:
            return self._context
        if isinstance(self._error, BrowserError):
            raise self._error
        raise BrowserError(
            f"The browser's launcher failed: {type(self._error).__name__}: {self._error}"
        ) from self._error

    async def relaunch(self) -> BrowserContext | None:
        """Close what is left of the browser, relaunch it, and return what the launcher yielded.

        Raises:
            BrowserError: It did not start.
        """
        await self.close()
        self._begin()
        return await self.result()

    async def close(self) -> None:
        """Close the browser, or cancel its launch, and wait until it has exited."""
        if self._launched:
            self._closing.set()
        else:
            self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

    async def memory(self) -> int:
        """Return the memory of the browser's processes, in bytes."""
        return await memory_of(self._plan.scratch)

    async def _wait_planned(self) -> LaunchPlan:
        await self._planned.wait()
        return self._plan


def is_in_use(profile: Path) -> bool:
    """Return whether a Chromium is using a profile; ours would open a tab there, and exit."""
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
    # What a killed browser leaves behind is removed with this directory. Chromium creates a
    # socket there, whose path must be short.
    longest = scratch / "org.chromium.Chromium.XXXXXX" / "SingletonSocket"
    if len(os.fsencode(longest)) > SOCKET_PATH:
        return {**os.environ}
    return {**os.environ, "TMPDIR": str(scratch)}


def _limit_hit(text: str) -> str | None:
    """Return which resource limit of this process ended the browser, if any, and what to do."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 (not everywhere)

    if "Too many open files" in text:
        return "too many open files. Raise the limit: ulimit -n 4096."
    for limit, option in ((resource.RLIMIT_AS, "-v"), (resource.RLIMIT_DATA, "-d")):
        allowed = resource.getrlimit(limit)[0]
        if "signal=SIG" in text and allowed != resource.RLIM_INFINITY:
            return (
                f"it crashed. Only {allowed / 2**30:.1f} GiB of memory may be reserved, but it "
                f"reserves much more than it uses. Lift the limit: ulimit {option} unlimited."
            )
    return None


_NO_SANDBOX: Final = (
    "No usable sandbox",
    "Failed to move to new namespace",
    "The SUID sandbox helper binary was found, but is not configured correctly",
)


def _why_not_started(chromium: Path, text: str, *, headed: bool) -> str:
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
