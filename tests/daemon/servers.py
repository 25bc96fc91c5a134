"""The records that servers write about themselves."""

import os
from pathlib import Path
from typing import Any

from opentabs_py.daemon.state import ServeCommand, ServerState

COMMAND = ServeCommand(["--plugin", "a b"], Path("/somewhere"))


def a_server(**more: Any) -> ServerState:
    """Return the record of a server named work that runs in this process."""
    about: dict[str, Any] = {
        "name": "work",
        "pid": os.getpid(),
        "version": "1.2.3",
        "started": 1.5,
        "mcp_url": "http://127.0.0.1:1/mcp",
        "mcp_token": None,
        "local_port": 2,
        "local_token": "secret",
        "arguments": ("--plugin", "a b"),
        "directory": "/somewhere",
        "log": None,
    }
    return ServerState(**{**about, **more})
