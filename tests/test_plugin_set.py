"""The plugins of a session, read from disk, and read again."""

import json
from pathlib import Path

import pytest

from opentabs_py.browser.stage import stage_extension
from opentabs_py.core.dispatch import Limits
from opentabs_py.plugin_set import PluginSet
from opentabs_py.server.toolbox import Toolbox
from tests.fakes import FakeBridge, a_tool, package_json, tools_json

pytestmark = pytest.mark.anyio


def build(directory: Path, *, name: str = "chat", tools: str | None = None) -> Path:
    """Write a built plugin."""
    (directory / "dist").mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text(package_json(name))
    (directory / "dist" / "tools.json").write_text(tools or tools_json(a_tool("send")))
    (directory / "dist" / "adapter.iife.js").write_bytes(b"/* adapter */")
    return directory


async def serve(plugins: PluginSet, tmp_path: Path) -> Toolbox:
    bridge = FakeBridge()
    toolbox = Toolbox(bridge, limits=Limits(), input_limit=1_000_000)
    await plugins.serve(bridge, toolbox, stage_extension(tmp_path / "extension", port=1))
    return toolbox


def texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


async def test_a_plugin_that_does_not_say_its_sdk_is_warned_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = build(tmp_path / "old", name="old", tools=json.dumps([a_tool("send")]))
    plugins = PluginSet([old, build(tmp_path / "chat")], {})
    await serve(plugins, tmp_path)
    await plugins.reload()
    build(old, name="old", tools=json.dumps([a_tool("read")]))
    changes = await plugins.reload()
    assert changes.changed == ("old",)
    [warning] = texts(caplog)
    assert warning.startswith("The plugin old is served, but its dist/tools.json has no sdkVersion")


async def test_a_plugin_rebuilt_with_a_newer_sdk_is_served_on_as_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = PluginSet([build(tmp_path / "chat")], {})
    toolbox = await serve(plugins, tmp_path)
    newer = json.dumps({"sdkVersion": "99.0.0", "tools": [a_tool("read")]})
    build(tmp_path / "chat", tools=newer)
    await plugins.reload()
    assert [tool.listing.name for tool in toolbox.tools] == ["chat_send"]
    assert "sdkVersion: is 99.0.0" in caplog.text
