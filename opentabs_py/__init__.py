"""OpenTabs for Python: tools that run in your signed-in browser tabs, served over MCP."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opentabs_py.version import __version__ as __version__

if TYPE_CHECKING:
    from opentabs_py.browser.discovery import Attach
    from opentabs_py.calling.listing import Listing
    from opentabs_py.calling.running import CallLog, RunningCall
    from opentabs_py.calling.tool import Output
    from opentabs_py.client import Client
    from opentabs_py.config.fleet import FleetOptions
    from opentabs_py.config.settings import Settings, load_settings
    from opentabs_py.core.limits import Limits
    from opentabs_py.core.progress import ProgressReport
    from opentabs_py.core.recording.scrub_rules import ScrubRules
    from opentabs_py.core.trace.record import CallRecord
    from opentabs_py.errors import (
        AuditError,
        BrokenResultError,
        BrowserError,
        BuildError,
        CallError,
        CallRefusedError,
        CallTimeoutError,
        ChainError,
        ConfigError,
        ErrorDetail,
        FleetError,
        OpenTabsError,
        PluginError,
        RecordingError,
        ReportError,
        ReviewError,
        ToolError,
        ToolFailedError,
        TraceError,
    )
    from opentabs_py.plugins.plugin import PluginChanges, SkippedPlugin
    from opentabs_py.python_tools.declare import skill, tool
    from opentabs_py.python_tools.module import Module, ToolStream
    from opentabs_py.python_tools.progress import Progress
    from opentabs_py.session.browsers.view import BrowserView
    from opentabs_py.session.plugins.view import PluginView
    from opentabs_py.session.session import OpenTabs, Server

__all__ = [
    "Attach",
    "AuditError",
    "BrokenResultError",
    "BrowserError",
    "BrowserView",
    "BuildError",
    "CallError",
    "CallLog",
    "CallRecord",
    "CallRefusedError",
    "CallTimeoutError",
    "ChainError",
    "Client",
    "ConfigError",
    "ErrorDetail",
    "FleetError",
    "FleetOptions",
    "Limits",
    "Listing",
    "Module",
    "OpenTabs",
    "OpenTabsError",
    "Output",
    "PluginChanges",
    "PluginError",
    "PluginView",
    "Progress",
    "ProgressReport",
    "RecordingError",
    "ReportError",
    "ReviewError",
    "RunningCall",
    "ScrubRules",
    "Server",
    "Settings",
    "SkippedPlugin",
    "ToolError",
    "ToolFailedError",
    "ToolStream",
    "TraceError",
    "load_settings",
    "skill",
    "tool",
]

# Loaded on first use, so that a command that needs none of them starts immediately.
_PLACES = {
    "Attach": "opentabs_py.browser.discovery",
    "AuditError": "opentabs_py.errors",
    "BrokenResultError": "opentabs_py.errors",
    "BrowserError": "opentabs_py.errors",
    "BrowserView": "opentabs_py.session.browsers.view",
    "BuildError": "opentabs_py.errors",
    "CallError": "opentabs_py.errors",
    "CallLog": "opentabs_py.calling.running",
    "CallRecord": "opentabs_py.core.trace.record",
    "CallRefusedError": "opentabs_py.errors",
    "CallTimeoutError": "opentabs_py.errors",
    "ChainError": "opentabs_py.errors",
    "Client": "opentabs_py.client",
    "ConfigError": "opentabs_py.errors",
    "ErrorDetail": "opentabs_py.errors",
    "FleetError": "opentabs_py.errors",
    "FleetOptions": "opentabs_py.config.fleet",
    "Limits": "opentabs_py.core.limits",
    "Listing": "opentabs_py.calling.listing",
    "Module": "opentabs_py.python_tools.module",
    "OpenTabs": "opentabs_py.session.session",
    "OpenTabsError": "opentabs_py.errors",
    "Output": "opentabs_py.calling.tool",
    "PluginChanges": "opentabs_py.plugins.plugin",
    "PluginError": "opentabs_py.errors",
    "PluginView": "opentabs_py.session.plugins.view",
    "Progress": "opentabs_py.python_tools.progress",
    "ProgressReport": "opentabs_py.core.progress",
    "RecordingError": "opentabs_py.errors",
    "ReportError": "opentabs_py.errors",
    "ReviewError": "opentabs_py.errors",
    "RunningCall": "opentabs_py.calling.running",
    "ScrubRules": "opentabs_py.core.recording.scrub_rules",
    "Server": "opentabs_py.session.session",
    "Settings": "opentabs_py.config.settings",
    "SkippedPlugin": "opentabs_py.plugins.plugin",
    "ToolError": "opentabs_py.errors",
    "ToolFailedError": "opentabs_py.errors",
    "ToolStream": "opentabs_py.python_tools.module",
    "TraceError": "opentabs_py.errors",
    "load_settings": "opentabs_py.config.settings",
    "skill": "opentabs_py.python_tools.declare",
    "tool": "opentabs_py.python_tools.declare",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
