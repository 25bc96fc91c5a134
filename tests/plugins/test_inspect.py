"""The inspection of a built plugin."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from opentabs_py.cli.plugin_warnings import warn_of_stale
from opentabs_py.plugins.freshness import is_stale
from opentabs_py.plugins.inspect import inspect_plugin
from opentabs_py.plugins.load import load_plugin
from tests.fakes import a_tool, package_json, tools_json


def built(directory: Path, *, adapter: bytes = b"//", **changes: Any) -> Path:
    (directory / "dist").mkdir(parents=True)
    (directory / "package.json").write_text(package_json("chat"))
    (directory / "dist" / "tools.json").write_text(tools_json(a_tool("send", **changes)))
    (directory / "dist" / "adapter.iife.js").write_bytes(adapter)
    return directory


def warnings(directory: Path) -> str:
    return "\n".join(inspect_plugin(directory).warnings)


def test_tools_are_named_as_clients_see_them_and_weighed(tmp_path: Path) -> None:
    inspection = inspect_plugin(built(tmp_path))

    [tool] = inspection.tools
    assert tool.name == "chat_send"
    assert tool.schema_bytes > 20
    assert inspection.tokens == tool.tokens.total > 20
    assert inspection.sizes["adapter.iife.js"] == 2


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (
            {"input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}},
            "send: text has no description",
        ),
        (
            {"input_schema": {"type": "object", "properties": {"text": {}, "to": {}}}},
            "send: text, to have no description",
        ),
        ({"output_schema": None}, "send: it has no output schema"),
        ({"description": "Sends it. " * 200}, "send: its description costs 6"),
        (
            {"input_schema": {"type": "object", "description": "Sends it. " * 9_000}},
            "the list costs 27,0",
        ),
    ],
)
def test_a_suspicious_tool_gets_a_warning(
    tmp_path: Path, changes: dict[str, Any], wanted: str
) -> None:
    assert wanted in warnings(built(tmp_path, **changes))


def test_a_plugin_without_an_sdk_version_gets_a_warning(tmp_path: Path) -> None:
    directory = built(tmp_path)
    assert "sdkVersion" not in warnings(directory)
    (directory / "dist" / "tools.json").write_text(json.dumps([a_tool("send")]))
    assert "its dist/tools.json has no sdkVersion" in warnings(directory)


def test_a_heavy_adapter_gets_a_warning(tmp_path: Path) -> None:
    assert "its adapter has 1,000,001 bytes" in warnings(built(tmp_path, adapter=b" " * 1_000_001))


def test_a_plugin_for_every_page_gets_a_warning(tmp_path: Path) -> None:
    directory = built(tmp_path)
    package = json.loads((directory / "package.json").read_text())
    package["opentabs"]["urlPatterns"] = ["<all_urls>"]
    (directory / "package.json").write_text(json.dumps(package))

    assert "it asks for access to every page (<all_urls>)" in warnings(directory)


def test_a_playground_will_do_for_a_homepage(tmp_path: Path) -> None:
    directory = built(tmp_path)
    before = warnings(directory)
    (directory / "playground").mkdir()
    (directory / "playground" / "index.html").write_text("<p>")

    assert "it has no homepage" in before
    assert "it has no homepage" not in warnings(directory)


def test_a_build_is_stale_once_its_source_is_younger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = built(tmp_path / "my plugins")
    source = directory / "src" / "index.ts"
    source.parent.mkdir()
    source.write_text("")
    for age, file in ((10, "src/index.ts"), (10, "package.json"), (5, "dist/tools.json")):
        os.utime(directory / file, (1_000_000 - age, 1_000_000 - age))
    os.utime(directory / "dist" / "adapter.iife.js", (1_000_000 - 5, 1_000_000 - 5))
    os.utime(directory / "dist", (1_000_000 - 5, 1_000_000 - 5))

    fresh = is_stale(directory)
    os.utime(source, (1_000_000, 1_000_000))

    warn_of_stale([load_plugin(directory)])

    assert not fresh
    assert is_stale(directory)
    said = capsys.readouterr().err
    assert f"has changed since it was built: run `opentabs build '{directory}'`." in said
    assert "run `opentabs build`" in warnings(directory)


def test_a_source_that_was_never_built_is_stale_and_a_build_without_source_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "a" / "src").mkdir(parents=True)
    (tmp_path / "a" / "src" / "index.js").write_text("")

    assert is_stale(tmp_path / "a")
    assert not is_stale(built(tmp_path / "b"))
