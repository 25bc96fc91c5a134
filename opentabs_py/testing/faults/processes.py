"""Find and kill the process of a browser's extension."""

from contextlib import suppress
from typing import Any

import psutil
from playwright.sync_api import BrowserContext

_MARK = "--extension-process"  # Chromium passes this to the renderer process of extensions


def kill_extension_process(context: BrowserContext) -> None:
    """Kill the process that a browser's extension runs in, if there is one at the moment.

    Kills only a process that the browser itself lists, that descends from the browser, and that was
    started for extensions.
    """
    browser = context.browser
    assert browser is not None
    cdp: Any = browser.new_browser_cdp_session()
    try:
        info = cdp.send("SystemInfo.getProcessInfo")
    finally:
        cdp.detach()
    processes: list[tuple[str, int]] = [(each["type"], each["id"]) for each in info["processInfo"]]
    [main] = [pid for type_, pid in processes if type_ == "browser"]
    for type_, pid in processes:
        if type_ == "renderer":
            with suppress(psutil.NoSuchProcess):  # it has just exited
                _kill_if_of_extension(psutil.Process(pid), main)


def _kill_if_of_extension(process: psutil.Process, browser: int) -> None:
    is_its_own = browser in {parent.pid for parent in process.parents()}
    # A renderer's command line is a single string.
    if is_its_own and _MARK in " ".join(process.cmdline()):
        process.kill()
