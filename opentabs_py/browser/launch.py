"""Launching Chromium with the extension, through Playwright."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from playwright.async_api import BrowserContext, Error, async_playwright

from opentabs_py.errors import BrowserError

CLOSE_WITHIN = 1.5  # s; a close takes 0.1 to 0.5 s


@asynccontextmanager
async def launch_browser(
    *,
    chromium: Path,
    extension: Path,
    profile: Path,
    headed: bool = False,
    args: Sequence[str] = (),
    ignore_default_args: Sequence[str] = (),
) -> AsyncGenerator[BrowserContext]:
    """A running Chromium with the extension in it, as Playwright's context.

    Args:
        chromium: The executable; not branded Chrome or Edge, which refuse extensions.
        extension: The staged extension's directory.
        profile: The user data directory; made when it is not there.
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
        with anyio.move_on_after(CLOSE_WITHIN, shield=True):
            await playwright.stop()


def _seed_preferences(profile: Path) -> None:
    """Without developer mode, `chrome.runtime.reload()` leaves the extension disabled."""
    preferences = profile / "Default" / "Preferences"
    if not preferences.exists():
        preferences.parent.mkdir(parents=True, exist_ok=True)
        preferences.write_text(json.dumps({"extensions": {"ui": {"developer_mode": True}}}))


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
