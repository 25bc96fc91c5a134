"""What Playwright records videos with: a build of ffmpeg that it downloads beside its browsers.

A Chromium of the system's comes without one, and Playwright's driver takes none from PATH.
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
def lend_ffmpeg() -> Generator[Mapping[str, str]]:
    """Have the system's ffmpeg take the place of Playwright's, where that is not installed.

    Yields:
        What to put into the environment of a driver that starts; it must end before this does.
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
