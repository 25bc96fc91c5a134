"""What the test kit knows of a tool of the running chain."""

from typing import Any, cast

import pytest

from opentabs_py.bridge.plugin_tool import PluginTool
from opentabs_py.testing.sync_session import SyncTool
from tests.fakes import FakeBridge, a_manifest, a_tool, pages_of


@pytest.mark.parametrize("plugin", ["chat", "my-chat"])
def test_a_tools_name_in_the_console_is_as_its_page_writes_it(plugin: str) -> None:
    manifest = a_manifest(a_tool("export_all"), name=plugin)
    tool = PluginTool(pages_of(FakeBridge()), manifest, manifest.tools[0], message_limit=1_000)
    nothing = cast(Any, None)

    assert SyncTool(tool, nothing, nothing).name_in_page == f"{plugin} export_all"
