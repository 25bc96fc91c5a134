"""The ffmpeg for Playwright's videos: a build that it downloads along with its browsers.

A system's Chromium comes without it, and Playwright's driver does not look for one on PATH.
"""

import os
import shutil
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from opentabs_py.browser.chromium import REGISTRY, registry_place
from opentabs_py.browser.scratch import temporary_dir


@contextmanager
def system_ffmpeg() -> Generator[Mapping[str, str]]:
    """Use the system's ffmpeg instead of Playwright's, if that is not installed.

    Yields:
        Environment variables for a driver, which must exit before this context does.
    """
    place = registry_place("ffmpeg", os.environ)
    found = shutil.which("ffmpeg")
    if place.exists() or found is None or sys.platform != "linux":
        yield {}
        return
    with temporary_dir() as registry:
        for entry in place.parent.iterdir() if place.parent.is_dir() else ():
            (registry / entry.name).symlink_to(entry)
        lent = registry / place.name
        lent.mkdir()
        (lent / "ffmpeg-linux").symlink_to(Path(found).absolute())
        (lent / "INSTALLATION_COMPLETE").touch()
        yield {REGISTRY: str(registry)}
