"""What a built plugin is: what it asks for, what it weighs, what deserves a second look."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentabs_py.core.plugins import PluginManifest, PluginTool, mcp_name
from opentabs_py.core.sdk_version import UNKNOWN
from opentabs_py.plugins.build import has_source
from opentabs_py.plugins.load import load_plugin, playground

HEAVY_ADAPTER = 1_000_000  # bytes; a page evaluates it at every load
LONG_LIST = 100_000  # bytes of a plugin's schemas; an agent reads them all
_EVERYWHERE = ("<all_urls>", "*://*/*", "http://*/*", "https://*/*")


@dataclass(frozen=True, slots=True)
class ToolSize:
    """A tool, and how much of it an agent reads.

    Attributes:
        name: Its MCP name.
        tool: As the manifest has it.
        schema_bytes: Of its two schemas, as JSON.
    """

    name: str
    tool: PluginTool
    schema_bytes: int


@dataclass(frozen=True, slots=True)
class Inspection:
    """What is to be said of a built plugin.

    Attributes:
        directory: Where it lies.
        manifest: What it says of itself.
        tools: Its tools, in their order.
        sizes: Bytes of each file of `dist/`, by its name.
        warnings: What deserves a second look, and why.
    """

    directory: Path
    manifest: PluginManifest
    tools: tuple[ToolSize, ...]
    sizes: dict[str, int]
    warnings: tuple[str, ...]


def inspect_plugin(directory: Path) -> Inspection:
    """Look a built plugin over.

    Raises:
        PluginError: It cannot be read.
    """
    manifest = load_plugin(directory).manifest
    tools = tuple(
        ToolSize(mcp_name(manifest.name, tool.name), tool, _schema_bytes(tool))
        for tool in manifest.tools
    )
    dist = directory / "dist"
    sizes = {
        file.relative_to(dist).as_posix(): file.stat().st_size
        for file in sorted(dist.rglob("*"))
        if file.is_file()
    }
    warnings = [*_of_plugin(directory, manifest, tools, sizes)]
    for tool in manifest.tools:
        warnings += _of_tool(tool)
    return Inspection(directory, manifest, tools, sizes, tuple(warnings))


def is_stale(directory: Path) -> bool:
    """Tell whether a plugin has source that is newer than what was built of it."""
    if not has_source(directory):
        return False
    built = directory / "dist" / "tools.json"
    if not built.is_file():
        return True
    sources = [directory / "package.json", *(directory / "src").rglob("*")]
    # A build that changes nothing writes nothing, so the youngest of the files counts.
    latest = max(file.stat().st_mtime for file in (directory / "dist").iterdir())
    return any(source.stat().st_mtime > latest for source in sources if source.is_file())


def _schema_bytes(tool: PluginTool) -> int:
    return len(json.dumps([tool.input_schema, tool.output_schema], separators=(",", ":")))


def _of_plugin(
    directory: Path,
    manifest: PluginManifest,
    tools: tuple[ToolSize, ...],
    sizes: dict[str, int],
) -> Iterator[str]:
    if is_stale(directory):
        yield "dist/ is older than src/: run `opentabs build`"
    if manifest.sdk_version is None:
        yield UNKNOWN
    broad = [each for each in manifest.url_patterns if each in _EVERYWHERE]
    if broad:
        yield f"it asks for every page ({', '.join(broad)}): name the sites that it is for"
    if not manifest.tools:
        yield "it has no tools"
    if manifest.homepage is None and playground(directory) is None:
        yield "it has no homepage, which is opened when a person has no page of it open"
    adapter = sizes.get("adapter.iife.js", 0)
    if adapter > HEAVY_ADAPTER:
        yield (
            f"its adapter has {adapter:,} bytes, which every page of it evaluates: "
            "bundle less (`import { z } from 'zod'` on a line of its own takes only what is used)"
        )
    listed = sum(tool.schema_bytes for tool in tools)
    if listed > LONG_LIST:
        yield f"its schemas have {listed:,} bytes, all of which an agent reads: shorten them"


def _of_tool(tool: PluginTool) -> Iterator[str]:
    properties = tool.input_schema.get("properties")
    silent = [
        name
        for name, schema in (properties if isinstance(properties, dict) else {}).items()
        if isinstance(schema, dict) and not _is_described(schema)
    ]
    if silent:
        yield f"{tool.name}: {', '.join(silent)} has no description: add .describe('…')"
    if tool.output_schema is None:
        yield f"{tool.name}: it has no output schema, so agents must guess what it gives"
    if len(tool.description) > 1024:
        yield f"{tool.name}: its description has {len(tool.description):,} characters: shorten it"


def _is_described(schema: dict[str, Any]) -> bool:
    return bool(schema.get("description") or schema.get("const") or schema.get("$ref"))
