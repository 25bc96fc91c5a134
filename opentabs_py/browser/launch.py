"""Launching Chromium with the extension, through Playwright."""

import json
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from playwright.async_api import BrowserContext, Error, async_playwright

from opentabs_py.errors import BrowserError

SOCKET_PATH = 103  # bytes of a Unix socket's path on macOS, 107 on Linux
CLOSE_WITHIN = 0.8  # s; a close takes 0.1 to 0.5 s
STOP_WITHIN = 0.4  # s; with the server's own half second, all ends within two


@asynccontextmanager
async def launch_browser(
    *,
    chromium: Path,
    extension: Path,
    profile: Path,
    scratch: Path,
    headed: bool = False,
    args: Sequence[str] = (),
    ignore_default_args: Sequence[str] = (),
) -> AsyncGenerator[BrowserContext]:
    """A running Chromium with the extension in it, as Playwright's context.

    Args:
        chromium: The executable; not branded Chrome or Edge, which refuse extensions.
        extension: The staged extension's directory.
        profile: The user data directory; made when it is not there.
        scratch: A directory for what browser and driver write besides; the caller removes it.
        headed: Show the window.
        args: More command-line switches.
        ignore_default_args: Switches of Playwright's to leave out.

    Raises:
        BrowserError: It did not start.
    """
    _seed_preferences(profile)
    playwright = await async_playwright().start()
    context: BrowserContext | None = None
    try:
        context = await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            headless=not headed,
            no_viewport=headed or None,
            artifacts_dir=scratch / "artifacts",
            env=_environment(scratch),
            ignore_default_args=list(ignore_default_args) or None,
            # Playwright disables extensions by default: both switches are needed.
            args=[
                f"--load-extension={extension}",
                f"--disable-extensions-except={extension}",
                *args,
            ],
            # Signals are the caller's: who is signalled closes the browser itself.
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        yield context
    except Error as error:
        if context is not None:
            raise  # the caller's own
        raise BrowserError(_why_not_started(chromium, error, headed=headed)) from error
    finally:
        if context is not None:
            with anyio.move_on_after(CLOSE_WITHIN, shield=True):
                await context.close()
        # Ends the driver, and with it a browser that did not close in time.
        with anyio.move_on_after(STOP_WITHIN, shield=True):
            await playwright.stop()


def _environment(scratch: Path) -> dict[str, str | float | bool]:
    # What a browser that is killed leaves behind goes with the directory. Chromium puts a socket
    # there, and a socket's path is short.
    socket = scratch / "org.chromium.Chromium.XXXXXX" / "SingletonSocket"
    if len(os.fsencode(socket)) > SOCKET_PATH:
        return {**os.environ}
    return {**os.environ, "TMPDIR": str(scratch)}


def _seed_preferences(profile: Path) -> None:
    """Without developer mode, `chrome.runtime.reload()` leaves the extension disabled."""
    preferences = profile / "Default" / "Preferences"
    try:
        if not preferences.exists():
            preferences.parent.mkdir(parents=True, exist_ok=True)
            preferences.write_text(json.dumps({"extensions": {"ui": {"developer_mode": True}}}))
    except OSError as error:
        raise BrowserError(
            f"{profile} cannot be a browser's profile: {error.strerror}. Give a directory that "
            "you can write to."
        ) from error


def _why_not_started(chromium: Path, error: Error, *, headed: bool) -> str:
    text = error.message
    if headed and ("DISPLAY" in text or "headless" in text):
        return (
            f"{chromium} found no screen to show a window on. Leave out --headed, or run this "
            "under a virtual screen: xvfb-run -a."
        )
    if "ProcessSingleton" in text or "user data directory is already in use" in text:
        return "The profile is in use by another browser. Close that one, or take another profile."
    first = text.strip().splitlines()[0]
    return f"{chromium} did not start: {first}. Is it a Chromium? See what it says to --version."
