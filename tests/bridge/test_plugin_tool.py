"""What a call of a plugin's tool may pass to its page."""

import pytest

from opentabs_py.bridge.plugin_tool import PluginTool
from opentabs_py.errors import CallRefusedError
from tests.fakes import FakeBridge, a_manifest, a_tool, pages_of


def test_an_integer_that_the_page_would_round_is_refused() -> None:
    manifest = a_manifest(a_tool("export"))
    tool = PluginTool(pages_of(FakeBridge()), manifest, manifest.tools[0], message_limit=1_000)
    with pytest.raises(CallRefusedError, match="at id: the page would not receive this number"):
        tool.check({"id": 2**53 + 1}, None)
