"""Load the MCP SDK while the browser starts: it takes as long as Chromium takes to start."""

import threading
from importlib import import_module
from typing import Final

import anyio

# All that a server needs for its first client: by then, the package may have been updated.
_MODULES: Final = ("opentabs_py.server.mcp.server", "opentabs_py.server.mcp.streamable_http")


def load_sdk_soon(*modules: str) -> None:
    """Start loading what a client will need, in a thread, without blocking anything.

    Args:
        modules: Further modules to load, for a client in this process.
    """
    # Not a daemon: if the interpreter exits while a thread imports a C++ module, it aborts.
    threading.Thread(target=_load, args=modules).start()


async def load_sdk(*modules: str) -> None:
    """Load what a client will need, or wait until it is loaded.

    Modules of the SDK import each other in circles, so while a thread loads it, do not import any
    of them in another, but wait for them here.

    Args:
        modules: Further modules to load, as for `load_sdk_soon`.
    """
    await anyio.to_thread.run_sync(_load, *modules)


def _load(*modules: str) -> None:
    # Every thread in this order, so that the second waits for the first.
    for module in (*_MODULES, *modules):
        import_module(module)
