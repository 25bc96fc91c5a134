"""A plugin whose files contain a string of 10,000 characters does not affect other plugins."""

import json
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from opentabs_py import OpenTabs
from opentabs_py.config.settings import load_settings
from opentabs_py.core.plugin_names import RESERVED_TOOLS
from opentabs_py.core.text import path_text
from tests.fakes import a_tool, package_json, tools_json

Step = str | int
Path_ = tuple[Step, ...]

LONG = 10_000

PACKAGE: dict[str, Any] = {
    "name": "@team/opentabs-plugin-chat",
    "version": "1.2.0",
    "author": "somebody",
    "opentabs": {
        "displayName": "Chat",
        "description": "Reads and writes.",
        "urlPatterns": ["https://chat.example/*"],
        "excludePatterns": ["https://chat.example/status/*"],
        "homepage": "https://chat.example/",
        "iconSvg": "<svg/>",
        "configSchema": {
            "site": {"type": "url", "label": "Site", "default": "https://other.example"},
            "often": {"type": "select", "options": ["daily", "weekly"], "default": "daily"},
            "note": {"type": "string", "placeholder": "-", "description": "A note"},
        },
    },
}
TOOLS: dict[str, Any] = {
    "sdkVersion": "0.1.0",
    "preScriptFile": "pre-script.iife.js",
    "preScriptHash": "0",
    "tools": [
        a_tool(
            "send",
            summary="Send",
            group="Messages",
            annotations={"title": "Send"},
            input_schema={
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$id": "https://chat.example/send",
                "type": "object",
                "properties": {
                    "text": {"type": "string", "pattern": "^a", "format": "email", "title": "T"},
                    "to": {"$ref": "#/$defs/name"},
                    "kind": {"enum": ["a"], "const": "a", "default": "a"},
                },
                "required": ["text"],
                "$defs": {"name": {"type": "string", "$anchor": "name", "$comment": "who"}},
            },
        )
    ],
}

# Members whose long strings people or agents would read.
SERVED = {
    "author",
    "opentabs.displayName",
    "opentabs.description",
    "opentabs.iconSvg",
    "opentabs.configSchema.site.label",
    "opentabs.configSchema.often.options[1]",
    "opentabs.configSchema.note.placeholder",
    "opentabs.configSchema.note.description",
    "preScriptHash",
    "tools[0].displayName",
    "tools[0].description",
    "tools[0].summary",
    "tools[0].icon",
    "tools[0].group",
    "tools[0].annotations.title",
    "tools[0].input_schema.$schema",
    "tools[0].input_schema.$id",
    "tools[0].input_schema.properties.text.pattern",
    "tools[0].input_schema.properties.text.format",
    "tools[0].input_schema.properties.text.title",
    "tools[0].input_schema.properties.kind.enum[0]",
    "tools[0].input_schema.properties.kind.const",
    "tools[0].input_schema.properties.kind.default",
    "tools[0].input_schema.required[0]",
    "tools[0].input_schema.$defs.name.$anchor",
    "tools[0].input_schema.$defs.name.$comment",
}


def strings(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, str):
        yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, part in steps if isinstance(value, dict | list) else ():
        yield from strings(part, (*path, step))


def grown(file: dict[str, Any], path: Path_, grow: Callable[[str], str]) -> dict[str, Any]:
    file = deepcopy(file)
    place: Any = file
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = grow(place[path[-1]])
    return file


def write(
    directory: Path, package: dict[str, Any] = PACKAGE, tools: dict[str, Any] = TOOLS
) -> None:
    (directory / "dist").mkdir(parents=True, exist_ok=True)
    (directory / "package.json").write_text(json.dumps(package))
    (directory / "dist" / "tools.json").write_text(json.dumps(tools))
    (directory / "dist" / "adapter.iife.js").write_bytes(b"/* adapter */")
    (directory / "dist" / "pre-script.iife.js").write_bytes(b"/* early */")


@pytest.fixture
def healthy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    directory = tmp_path / "healthy"
    write(directory, json.loads(package_json("healthy")), json.loads(tools_json(a_tool("read"))))
    return directory


def a_session(*directories: Path) -> OpenTabs:
    settings = load_settings(port=0).model_copy(update={"plugins": ()})
    return OpenTabs(plugins=directories, browser="none", settings=settings)


async def listed(tabs: OpenTabs) -> set[str]:
    async with Client(tabs.mcp_server) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


def grow_like(text: str) -> str:
    """Repeat the last letter or digit, so that a pattern remains a pattern and a name a name."""
    at = max((i for i, c in enumerate(text) if c.isalnum()), default=0)
    return text[:at] + text[at] * (LONG - len(text)) + text[at:]


def grow_with_x(text: str) -> str:
    return text + "x" * (LONG - len(text))


PLACES = [("package", PACKAGE, path) for path in strings(PACKAGE)]
PLACES += [("tools", TOOLS, path) for path in strings(TOOLS)]


@pytest.mark.anyio
async def test_any_string_of_10_000_characters_skips_its_plugin_alone_at_reload(
    tmp_path: Path, healthy: Path
) -> None:
    long = tmp_path / "long"
    async with a_session(healthy, long) as tabs:
        for file, content, path in PLACES:
            for growing in (grow_like, grow_with_x):
                shutil.rmtree(long, ignore_errors=True)
                await tabs.reload_plugins()  # otherwise it would still be served as before
                write(long, **{file: grown(content, path, growing)})
                await tabs.reload_plugins()
                name = path_text(path)
                served = [plugin.directory for plugin in tabs.internals.plugin_set.plugins]
                assert served == ([healthy, long] if name in SERVED else [healthy]), name
                skipped = [each.directory for each in tabs.skipped_plugins]
                assert skipped == ([] if name in SERVED else [long]), name
                assert all(len(each.reason) < 1_000 for each in tabs.skipped_plugins), name
                assert "healthy_read" in await listed(tabs), name


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    [
        ("name",),
        ("version",),
        ("opentabs", "urlPatterns", 0),
        ("opentabs", "excludePatterns", 0),
        ("opentabs", "configSchema", "site", "default"),
    ],
    ids=path_text,
)
async def test_a_session_starts_beside_a_plugin_with_a_long_string(
    tmp_path: Path, healthy: Path, path: Path_
) -> None:
    long = tmp_path / "long"
    write(long, grown(PACKAGE, path, grow_like))
    async with a_session(healthy, long) as tabs:
        assert [plugin.directory for plugin in tabs.internals.plugin_set.plugins] == [healthy]
        assert [each.directory for each in tabs.skipped_plugins] == [long]
        assert await listed(tabs) == {"healthy_read", *RESERVED_TOOLS}
