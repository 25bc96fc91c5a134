"""Find running browsers that allow remote debugging.

Chrome 144 and later have a switch for it on chrome://inspect/#remote-debugging. While it is on, the
file `DevToolsActivePort` in the user data directory says where the browser listens.
"""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from opentabs_py.config.paths import home_dir
from opentabs_py.core.hosts import LOCAL
from opentabs_py.errors import BrowserError, ConfigError

PORT_FILE: Final = "DevToolsActivePort"
HOW_TO_ALLOW: Final = (
    "In the browser that you use, open chrome://inspect/#remote-debugging and tick "
    '"Allow remote debugging for this browser instance". (Chrome 144 or later.)'
)


@dataclass(frozen=True, slots=True)
class Attach:
    """Use a browser that is running, instead of launching one.

    Attributes:
        user_data_dir: The browser's user data directory; None to look where browsers usually have
            it.
        cdp: The browser's URL, `ws://127.0.0.1:PORT/devtools/browser/UUID`, instead of looking.
        keep: Leave the extension in the browser at the end, so that the next server need not ask
            again.
    """

    user_data_dir: Path | None = None
    cdp: str | None = None
    keep: bool = False

    @property
    def directory_name(self) -> str:
        """The name of the directory that the extension for this browser is staged in.

        A named browser has its own, with its own secret: the extension that was left in another one
        must not connect in its place.
        """
        named = self.cdp or self.user_data_dir
        if named is None:
            return "attached"
        which = named if isinstance(named, str) else str(named.resolve())
        return f"attached-{sha256(which.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class DebuggingEndpoint:
    """Where a running browser listens for debugging connections.

    Attributes:
        browser: The browser's name, for users: `Chrome`, `Chromium`, `Edge` or `Brave`, or its URL.
        url: `ws://127.0.0.1:PORT/devtools/browser/UUID`; another after each start of the browser.
    """

    browser: str
    url: str


def user_data_dirs(
    platform: str = sys.platform, environment: Mapping[str, str] = os.environ
) -> dict[Path, str]:
    """Return where browsers keep their profiles on this system, and each browser's name."""
    home = home_dir()
    if platform == "darwin":
        base = home / "Library" / "Application Support"
        names = {
            "Google/Chrome": "Chrome",
            "Chromium": "Chromium",
            "Microsoft Edge": "Edge",
            "BraveSoftware/Brave-Browser": "Brave",
        }
    elif platform == "win32":
        base = Path(environment.get("LOCALAPPDATA", home / "AppData" / "Local"))
        names = {
            "Google/Chrome/User Data": "Chrome",
            "Chromium/User Data": "Chromium",
            "Microsoft/Edge/User Data": "Edge",
            "BraveSoftware/Brave-Browser/User Data": "Brave",
        }
    else:
        base = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
        names = {
            "google-chrome": "Chrome",
            "chromium": "Chromium",
            "microsoft-edge": "Edge",
            "BraveSoftware/Brave-Browser": "Brave",
        }
    found = {base / directory: name for directory, name in names.items()}
    if platform == "linux":
        found[home / "snap" / "chromium" / "common" / "chromium"] = "Chromium"
    return found


def find_endpoint(user_data_dir: Path | None, cdp: str | None) -> DebuggingEndpoint | None:
    """Return where the running browser listens; None if none allows debugging at the moment.

    Args:
        user_data_dir: Look only in this browser's directory.
        cdp: The URL itself, `ws://...`.

    Raises:
        BrowserError: Several browsers allow it, so one must be named.
    """
    if cdp is not None:
        return DebuggingEndpoint(cdp, cdp) if _listens(cdp) else None
    places = user_data_dirs() if user_data_dir is None else {user_data_dir: "The browser"}
    found = {
        directory: DebuggingEndpoint(name, url)
        for directory, name in places.items()
        if (url := _read(directory / PORT_FILE)) is not None and _listens(url)
    }
    if len(found) > 1:
        named = "\n".join(f"  --user-data-dir {directory}" for directory in found)
        raise BrowserError(f"Several browsers allow debugging. Choose one:\n{named}")
    return next(iter(found.values()), None)


def check_cdp(url: str) -> str:
    """Return the URL of a browser on this machine, if it is one.

    Raises:
        ConfigError: It is not: whoever is connected to a browser can do anything in it.
    """
    host = url.removeprefix("ws://").partition("/")[0].rpartition(":")[0]
    if not url.startswith("ws://") or host not in LOCAL:
        raise ConfigError(
            f"Cannot use --cdp {url}. Pass the URL of a browser on this machine, as in "
            "ws://127.0.0.1:9222/devtools/browser/UUID."
        )
    return url


def _read(file: Path) -> str | None:
    try:
        port, path = file.read_text().splitlines()[:2]
        return f"ws://127.0.0.1:{int(port)}{path}" if path.startswith("/") else None
    except (OSError, ValueError):
        return None


def _listens(url: str) -> bool:
    """Return whether anything listens there; a browser that was killed leaves its file behind."""
    return listens(url.removeprefix("ws://").partition("/")[0])


def listens(address: str) -> bool:
    """Return whether anything listens at an address on this machine, `HOST:PORT`."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=1):
            return True
    except (OSError, ValueError):
        return False
