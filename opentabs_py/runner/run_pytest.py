"""Run pytest, without a traceback if Ctrl-C comes while it is still being loaded.

A script, not a module: `python -m` would import our package, and pytest warns of packages with
plugins that were imported before it.
"""

import os
import sys

_INTERRUPTED = 2  # as of pytest itself

if __name__ == "__main__":
    try:
        from runpy import run_module

        if not sys.flags.safe_path:
            sys.path[0] = os.getcwd()  # noqa: PTH109 (as `python -m pytest` has it, and fast)
        run_module("pytest", run_name="__main__", alter_sys=True)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
