"""OpenTabs for Python: tools that run in your signed-in browser tabs, served over MCP."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentabs_py.errors import ToolError
    from opentabs_py.session import OpenTabs, Server
    from opentabs_py.tools.declare import Timeouts, skill, tool
    from opentabs_py.tools.progress import Progress
    from opentabs_py.tools.streams import Module, ToolStream

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

# Looked up when they are first asked for: a command that needs none of them starts at once.
_PLACES = {
    "Module": "opentabs_py.tools.streams",
    "OpenTabs": "opentabs_py.session",
    "Progress": "opentabs_py.tools.progress",
    "Server": "opentabs_py.session",
    "Timeouts": "opentabs_py.tools.declare",
    "ToolError": "opentabs_py.errors",
    "ToolStream": "opentabs_py.tools.streams",
    "skill": "opentabs_py.tools.declare",
    "tool": "opentabs_py.tools.declare",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
