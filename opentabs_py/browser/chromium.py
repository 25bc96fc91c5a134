"""Find a Chromium that can load an unpacked extension, without starting anything."""

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from opentabs_py.config.paths import expand_user, home_dir
from opentabs_py.config.settings import Settings
from opentabs_py.errors import BrowserError

REGISTRY = "PLAYWRIGHT_BROWSERS_PATH"  # Playwright's own variable
VARIABLE = "OPENTABS_CHROMIUM"
NAMES_ON_PATH = ("chromium", "chromium-browser")
BY_HAND = f"""\
  sudo apt install chromium               on Debian; other systems have a similar package
  export {VARIABLE}=/path/to/it    use your own: Chromium or Chrome for Testing"""
WAYS_OUT = f"""\
Any one of these is enough:
  opentabs browser install                download one, or install the system package
{BY_HAND}"""

# The executable inside Playwright's directory for a browser, from Playwright's registry.
_PLAYWRIGHT_LAYOUTS = {
    ("linux", "x64"): "chrome-linux64/chrome",
    ("linux", "arm64"): "chrome-linux-arm64/chrome",
    ("darwin", "x64"): (
        "chrome-mac-x64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing"
    ),
    ("darwin", "arm64"): (
        "chrome-mac-arm64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing"
    ),
    ("win32", "x64"): "chrome-win64/chrome.exe",
    ("win32", "arm64"): "chrome-win64/chrome.exe",
}

_BRANDED_ON_PATH = (
    "google-chrome",
    "google-chrome-stable",
    "google-chrome-beta",
    "google-chrome-unstable",
    "microsoft-edge",
    "microsoft-edge-stable",
)
# Paths or names of the two vendors' builds; lower case, forward slashes.
_BRANDS = {
    "Google Chrome": re.compile(
        r"/google-chrome(-stable|-beta|-unstable)?$|/opt/google/chrome"
        r"|/google/chrome[^/]*/application/|/google chrome( beta| dev| canary)?\.app/"
    ),
    "Microsoft Edge": re.compile(
        r"/microsoft-edge(-stable|-beta|-dev)?$|/msedge(\.exe)?$|/opt/microsoft/msedge"
        r"|/microsoft edge[^/]*\.app/"
    ),
}
_NO_LOAD_EXTENSION = "since version 137, branded Chrome and Edge ignore --load-extension"


@dataclass(frozen=True, slots=True)
class Chromium:
    """A Chromium, and how it was found.

    Attributes:
        path: The executable.
        source: The environment variable, Playwright's download, or the search path.
    """

    path: Path
    source: Literal["OPENTABS_CHROMIUM", "playwright", "PATH"]


def find_chromium(*, environ: Mapping[str, str] = os.environ) -> Chromium:
    """Find a Chromium that can load the extension.

    Returns the first of: the one `OPENTABS_CHROMIUM` names, the one the installed Playwright
    has downloaded, `chromium` or `chromium-browser` on `PATH`. Starts nothing.

    Raises:
        BrowserError: There is none, or `OPENTABS_CHROMIUM` names something else. The text
            says where it looked and what to do.
    """
    if named := environ.get(VARIABLE):
        return Chromium(_named_by_user(named, environ), "OPENTABS_CHROMIUM")
    downloaded = playwright_download(environ)
    if downloaded is not None and _is_complete(downloaded):
        return Chromium(downloaded.executable, "playwright")
    for name in NAMES_ON_PATH:
        found = _which(name, environ)
        if found is not None and _brand(found) is None:
            return Chromium(found, "PATH")
    raise BrowserError(_none_found(downloaded, environ))


def configured_chromium(settings: Settings) -> Path:
    """Return the Chromium that the settings name, or else the one `find_chromium` finds.

    Raises:
        BrowserError: There is no usable one.
    """
    if settings.chromium is None:
        return find_chromium().path
    # Wherever the setting came from, it gets the same checks as the variable.
    return find_chromium(environ={**os.environ, VARIABLE: str(settings.chromium)}).path


@dataclass(frozen=True, slots=True)
class PlaywrightDownload:
    """Where Playwright installs its Chromium, whether or not it is there."""

    directory: Path
    executable: Path


def playwright_download(environ: Mapping[str, str]) -> PlaywrightDownload | None:
    """Return the location of the installed Playwright's Chromium, or None.

    None on a system for which Playwright has no Chromium. This is the full browser, because the
    headless shell does not support extensions.
    """
    layout = _PLAYWRIGHT_LAYOUTS.get((sys.platform, _architecture()))
    if layout is None:
        return None
    directory = registry_place("chromium", environ)
    return PlaywrightDownload(directory, directory / layout)


def registry_place(name: str, environ: Mapping[str, str]) -> Path:
    """Return the directory in which the installed Playwright looks for a download."""
    with resources.as_file(resources.files("playwright")) as package:
        driver = package / "driver" / "package"
    downloads = json.loads((driver / "browsers.json").read_text(encoding="utf-8"))["browsers"]
    revision = next(each["revision"] for each in downloads if each["name"] == name)
    return _playwright_registry(driver, environ) / f"{name}-{revision}"


def _architecture() -> str:
    return "arm64" if platform.machine().lower() in {"arm64", "aarch64"} else "x64"


def _playwright_registry(driver: Path, environ: Mapping[str, str]) -> Path:
    if chosen := environ.get(REGISTRY):
        if chosen == "0":
            return driver / ".local-browsers"
        return Path(environ.get("INIT_CWD") or Path.cwd()) / chosen
    home = Path(environ.get("HOME") or home_dir())
    if sys.platform == "darwin":
        cache = home / "Library" / "Caches"
    elif sys.platform == "win32":
        cache = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
    return cache / "ms-playwright"


def _is_complete(download: PlaywrightDownload) -> bool:
    # Playwright writes the marker last; if it is missing, extraction was interrupted.
    marker = download.directory / "INSTALLATION_COMPLETE"
    return marker.exists() and os.access(download.executable, os.X_OK)


def _which(name: str, environ: Mapping[str, str]) -> Path | None:
    found = shutil.which(name, path=environ.get("PATH", ""))
    return None if found is None else Path(found)


def _brand(path: Path) -> str | None:
    for place in (path, path.resolve()):
        text = place.as_posix().lower()
        for brand, mark in _BRANDS.items():
            if mark.search(text):
                return brand
    return None


def _named_by_user(named: str, environ: Mapping[str, str]) -> Path:
    path = expand_user(Path(named))
    found = _which(str(path), environ)
    if found is None:
        raise BrowserError(
            f"{VARIABLE} is {named!r}, {_what_is_wrong(path)}. Set it to the executable of a "
            "Chromium or Chrome for Testing, or unset it to find one automatically."
        )
    if (brand := _brand(found)) is not None:
        raise BrowserError(
            f"{VARIABLE} is {named!r}, which is {brand}, and {_NO_LOAD_EXTENSION}. "
            "Set it to a Chromium or Chrome for Testing, or unset it to find one automatically."
        )
    if "headless" in found.name.lower():
        raise BrowserError(
            f"{VARIABLE} is {named!r}, a headless shell, which does not support extensions. "
            "Set it to a full Chromium (which can run headless too), or unset it to find one "
            "automatically."
        )
    return found


def _what_is_wrong(path: Path) -> str:
    if path.is_dir():
        return "which is a directory, not the executable inside it"
    if path.exists():
        return "which is not executable"
    return "which does not exist"


def _none_found(downloaded: PlaywrightDownload | None, environ: Mapping[str, str]) -> str:
    looked = [f"{VARIABLE} is not set"]
    if downloaded is not None:
        looked.append(f"Playwright's is not at {downloaded.executable}")
    looked.append(f"{' and '.join(NAMES_ON_PATH)} are not on PATH")
    lines = ["Found no Chromium that can load an extension: " + "; ".join(looked) + "."]
    for name in (*_BRANDED_ON_PATH, *NAMES_ON_PATH):
        if (found := _which(name, environ)) is not None:
            lines.append(f"{found} cannot be used: {_NO_LOAD_EXTENSION}.")
            break
    return "\n".join([*lines, WAYS_OUT])
