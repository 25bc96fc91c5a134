"""The names of a plugin's files."""

from typing import Final

PACKAGE: Final = "package.json"
DIST: Final = "dist"  # the directory of a build
ADAPTER: Final = "adapter.iife.js"  # in `dist`, as are all of a build
PRE_SCRIPT: Final = "pre-script.iife.js"
TOOLS: Final = "tools.json"
BUILT_ADAPTER: Final = f"{DIST}/{ADAPTER}"
BUILT_TOOLS: Final = f"{DIST}/{TOOLS}"
