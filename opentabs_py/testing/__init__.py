"""The test kit: test plugins end to end, from pytest or from any program.

    from opentabs_py.testing import expect

    def test_export_reports_each_page(opentabs, page):
        page.goto("http://localhost:8000/")
        call = opentabs.start("demo_export_messages", channelId="general")
        expect(call).to_succeed(within=5)

See `docs/testing.md` for the guide.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentabs_py.core.recording.exchange import RecordedCall
    from opentabs_py.session.session import OpenTabs
    from opentabs_py.testing.call import Call
    from opentabs_py.testing.client import SyncMcpClient
    from opentabs_py.testing.clock import Clock
    from opentabs_py.testing.expectations.expectations import CallExpectations, PluginExpectations
    from opentabs_py.testing.expectations.expecting import expect
    from opentabs_py.testing.expectations.page_expectations import PageExpectations
    from opentabs_py.testing.faults.injector import FaultInjector
    from opentabs_py.testing.fuzz.errors import ContractError
    from opentabs_py.testing.fuzz.expecting import expect_contract
    from opentabs_py.testing.hands import SyncHands
    from opentabs_py.testing.page_tools import SyncPageTool
    from opentabs_py.testing.plugin_view import SyncPluginView
    from opentabs_py.testing.recordings.recording import ReplayedSite
    from opentabs_py.testing.sync_session import SyncOpenTabs, SyncTool
    from opentabs_py.testing.transcript import PluginLog

__all__ = [
    "Call",
    "CallExpectations",
    "Clock",
    "ContractError",
    "FaultInjector",
    "OpenTabs",
    "PageExpectations",
    "PluginExpectations",
    "PluginLog",
    "RecordedCall",
    "ReplayedSite",
    "SyncHands",
    "SyncMcpClient",
    "SyncOpenTabs",
    "SyncPageTool",
    "SyncPluginView",
    "SyncTool",
    "expect",
    "expect_contract",
]

# Every run of pytest imports this package, even where it is not used, so heavy modules are imported
# on first use.
_PLACES = {
    "Call": "opentabs_py.testing.call",
    "CallExpectations": "opentabs_py.testing.expectations.expectations",
    "PluginExpectations": "opentabs_py.testing.expectations.expectations",
    "PageExpectations": "opentabs_py.testing.expectations.page_expectations",
    "SyncPageTool": "opentabs_py.testing.page_tools",
    "Clock": "opentabs_py.testing.clock",
    "ContractError": "opentabs_py.testing.fuzz.errors",
    "FaultInjector": "opentabs_py.testing.faults.injector",
    "OpenTabs": "opentabs_py.session.session",
    "PluginLog": "opentabs_py.testing.transcript",
    "RecordedCall": "opentabs_py.core.recording.exchange",
    "ReplayedSite": "opentabs_py.testing.recordings.recording",
    "SyncHands": "opentabs_py.testing.hands",
    "SyncMcpClient": "opentabs_py.testing.client",
    "SyncOpenTabs": "opentabs_py.testing.sync_session",
    "SyncPluginView": "opentabs_py.testing.plugin_view",
    "SyncTool": "opentabs_py.testing.sync_session",
    "expect": "opentabs_py.testing.expectations.expecting",
    "expect_contract": "opentabs_py.testing.fuzz.expecting",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
