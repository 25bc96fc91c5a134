"""The tools of a server, by their names."""

from opentabs_py.server.tools.registry import ToolRegistry
from tests.fakes import FakeBridge, a_manifest, a_tool


def test_tools_are_listed_by_name_with_the_tab_id_in_their_schema() -> None:
    registry = ToolRegistry(FakeBridge().pages, message_limit=1000)
    registry.set_plugins([a_manifest(a_tool("send"), a_tool("read"))])
    assert [tool.listing.name for tool in registry.tools] == ["chat_read", "chat_send"]
    tool = registry.tools[0].listing
    assert "tabId" in tool.input_schema["properties"]
    assert a_tool("read")["input_schema"] == {"type": "object"}


def test_setting_plugins_again_drops_the_tools_of_the_old_ones() -> None:
    registry = ToolRegistry(FakeBridge().pages, message_limit=1000)
    registry.set_plugins([a_manifest(a_tool("send"))])
    registry.set_plugins([a_manifest(a_tool("read"), name="mail")])
    assert [tool.listing.name for tool in registry.tools] == ["mail_read"]
