"""The demo plugin, loaded like any plugin."""

import re

import pytest
from starlette.testclient import TestClient

from opentabs_py.core.plugin_names import mcp_name
from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.plugins.manifest_files import parse_plugin
from opentabs_py.core.schemas.checker import Checker
from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.demo import create_demo_site, demo_plugin_dir


@pytest.fixture
def manifest() -> PluginManifest:
    directory = demo_plugin_dir()
    return parse_plugin(
        (directory / "package.json").read_bytes(),
        (directory / "dist" / "tools.json").read_bytes(),
    )


def test_the_demo_plugin_is_valid_and_has_three_tools(manifest: PluginManifest) -> None:
    assert manifest.name == "demo"
    assert [mcp_name(manifest.name, tool.name) for tool in manifest.tools] == [
        "demo_export_messages",
        "demo_list_channels",
        "demo_send_message",
    ]


@pytest.mark.parametrize("url", ["http://127.0.0.1:49152/", "http://localhost:8000/"])
def test_the_plugin_is_for_the_site_on_any_port(manifest: PluginManifest, url: str) -> None:
    assert any(parse_match_pattern(pattern).matches(url) for pattern in manifest.url_patterns)


def test_the_adapter_has_a_handler_for_every_tool(manifest: PluginManifest) -> None:
    adapter = (demo_plugin_dir() / "dist" / "adapter.iife.js").read_text("utf-8")
    handled = re.findall(r'\{ name: "(\w+)", handle: \w+ \}', adapter)
    assert handled == [tool.name for tool in manifest.tools]


def test_what_the_site_answers_is_what_the_tools_promise(manifest: PluginManifest) -> None:
    promised = {tool.name: tool.output_schema or {} for tool in manifest.tools}
    with TestClient(create_demo_site(page_delay=0), base_url="http://127.0.0.1") as client:
        client.get("/")
        page = client.get("/api/channels/general/messages").json()
        sent = client.post("/api/channels/general/messages", json={"text": "hi"}).json()
        answers = {
            "export_messages": {"messages": page["messages"], "total": len(page["messages"])},
            "list_channels": client.get("/api/channels").json(),
            "send_message": sent,
        }
    assert answers.keys() == promised.keys()
    for name, answer in answers.items():
        assert Checker(promised[name]).violations(answer) == []


def test_the_page_is_the_one_the_plugin_looks_for() -> None:
    adapter = (demo_plugin_dir() / "dist" / "adapter.iife.js").read_text("utf-8")
    [mark] = re.findall(r"""querySelector\('meta\[name="([\w-]+)"\]'\)""", adapter)
    with TestClient(create_demo_site(), base_url="http://127.0.0.1") as client:
        assert f'<meta name="{mark}"' in client.get("/").text
