"""How Chromium is launched with the extension, whoever launches it."""

import json
import os
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentabs_py.browser import switches
from opentabs_py.browser.launch_failures import why_not_connected, why_not_started
from opentabs_py.directories import create_private
from opentabs_py.errors import BrowserError

SOCKET_PATH: Final = 103  # bytes of a Unix socket's path on macOS, 107 on Linux


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
            BrowserError: It is not writable, another browser uses it, or the extension is gone.
        """
        if self.extension is not None and not (self.extension / "manifest.json").exists():
            raise BrowserError(
                f"The extension's copy in {self.extension} was removed while the server ran, "
                "perhaps with other temporary files. Restart the server."
            )
        if is_in_use(self.profile):
            raise BrowserError(
                f"The profile {self.profile} is in use by another browser, perhaps that of another "
                "`opentabs serve`. Close that browser, or choose another directory."
            )
        preferences = self.profile / "Default" / "Preferences"
        try:
            if not preferences.exists():
                # Its cookies are private. The mode of an existing directory is the user's choice.
                create_private(self.profile)
                preferences.parent.mkdir(mode=0o700, exist_ok=True)
                preferences.write_text(json.dumps(self._preferences()))
        except OSError as error:
            raise BrowserError(
                f"Cannot use {self.profile} as a browser profile: {error.strerror}. Choose a "
                "directory that you can write to."
            ) from error

    def _preferences(self) -> dict[str, Any]:
        # Without developer mode, `chrome.runtime.reload()` leaves the extension disabled.
        preferences: dict[str, Any] = {"extensions": {"ui": {"developer_mode": True}}}
        if not self.keeps_profile:  # its offer to save a password would only cover the page
            preferences["credentials_enable_service"] = False
        return preferences

    def not_started(self, output: str) -> BrowserError:
        """Return the error for a failed launch, with advice derived from Playwright's message."""
        return BrowserError(why_not_started(self.chromium, output, headed=self.headed))

    def not_connected(self, within: float) -> BrowserError:
        """Return the error for an extension that has not connected in time, in seconds."""
        written = [each for each in (self.scratch, self.profile) if each.exists()]
        return BrowserError(why_not_connected(written, within))


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
