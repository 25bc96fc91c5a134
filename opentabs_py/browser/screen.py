"""Whether there is a screen."""

import os
import sys


def has_screen() -> bool:
    """Return whether a browser can show a window."""
    if sys.platform != "linux":
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
