"""OpenTabs for Python: tools that run in your signed-in browser tabs, served over MCP."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentabs_py.errors import ToolError
    from opentabs_py.python_tools.declare import Timeouts, skill, tool
    from opentabs_py.python_tools.progress import Progress
    from opentabs_py.python_tools.streams import Module, ToolStream
    from opentabs_py.session.session import OpenTabs, Server

__version__ = "0.1.0"
__all__ = [
    "Module",
    "OpenTabs",
    "Progress",
    "Server",
    "Timeouts",
    "ToolError",
    "ToolStream",
    "skill",
    "tool",
]

# Loaded on first use, so that a command that needs none of them starts immediately.
_PLACES = {
    "Module": "opentabs_py.python_tools.streams",
    "OpenTabs": "opentabs_py.session.session",
    "Progress": "opentabs_py.python_tools.progress",
    "Server": "opentabs_py.session.session",
    "Timeouts": "opentabs_py.python_tools.declare",
    "ToolError": "opentabs_py.errors",
    "ToolStream": "opentabs_py.python_tools.streams",
    "skill": "opentabs_py.python_tools.declare",
    "tool": "opentabs_py.python_tools.declare",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
