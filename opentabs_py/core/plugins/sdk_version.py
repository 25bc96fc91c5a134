"""The version of the SDK that a plugin was built with (Semantic Versioning 2.0.0)."""

import re
from typing import Final

from opentabs_py.core.plugins.file_names import BUILT_TOOLS

KNOWN: Final = (0, 1)
"""Major and minor version of the newest supported SDK; patch versions add nothing."""

_VERSION: Final = re.compile(
    r"(\d{1,9})\.(\d{1,9})\.\d{1,9}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII
)
UNKNOWN: Final = (
    f"its {BUILT_TOOLS} has no sdkVersion, so it may not fit this version of opentabs-py; "
    "build it again"
)
"""The warning for a plugin that does not state its SDK version."""


def is_version(text: str) -> bool:
    """Return whether a string is a version such as `0.1.0`."""
    return _VERSION.fullmatch(text) is not None


def is_newer(version: str) -> bool:
    """Return whether plugins built with this SDK version may need a newer host."""
    found = _VERSION.fullmatch(version)
    return found is not None and (int(found[1]), int(found[2])) > KNOWN
