"""Inspect a built plugin: the access it asks for, its size, and anything suspicious."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opentabs_py.calling.listing import Listing
from opentabs_py.calling.plugin_listing import plugin_tool_listing
from opentabs_py.core.plugins.file_names import ADAPTER, DIST
from opentabs_py.core.plugins.manifest import ManifestTool, PluginManifest
from opentabs_py.core.plugins.sdk_version import UNKNOWN
from opentabs_py.core.tool_tokens import ToolTokens, advise_on_list, count_tool
from opentabs_py.plugins.freshness import is_stale
from opentabs_py.plugins.load import load_plugin, playground

HEAVY_ADAPTER = 1_000_000  # bytes; a page evaluates it at every load
_EVERYWHERE = ("<all_urls>", "*://*/*", "http://*/*", "https://*/*")


@dataclass(frozen=True, slots=True)
class ToolSize:
    """A tool, and how much of it an agent reads.

    Attributes:
        name: Its MCP name.
        tool: The tool in the manifest.
        schema_bytes: The size of its two schemas as JSON.
        tokens: What it costs in the list of tools.
    """

    name: str
    tool: ManifestTool
    schema_bytes: int
    tokens: ToolTokens


@dataclass(frozen=True, slots=True)
class Inspection:
    """The findings about a built plugin.

    Attributes:
        directory: The plugin's directory.
        manifest: Its manifest.
        tools: Its tools, in order.
        sizes: The size in bytes of each file in `dist/`, by name.
        warnings: What deserves a second look, and why.
    """

    directory: Path
    manifest: PluginManifest
    tools: tuple[ToolSize, ...]
    sizes: dict[str, int]
    warnings: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """What all of its tools cost, in tokens."""
        return sum(tool.tokens.total for tool in self.tools)


def inspect_plugin(directory: Path) -> Inspection:
    """Inspect a built plugin.

    Raises:
        PluginError: It cannot be read.
    """
    manifest = load_plugin(directory).manifest
    tools = tuple(_weigh(plugin_tool_listing(manifest, tool), tool) for tool in manifest.tools)
    dist = directory / DIST
    sizes = {
        file.relative_to(dist).as_posix(): file.stat().st_size
        for file in sorted(dist.rglob("*"))
        if file.is_file()
    }
    warnings = [*_of_plugin(directory, manifest, tools, sizes)]
    for each in tools:
        warnings += _of_tool(each.tool)
        warnings += [f"{each.tool.name}: {advice}" for advice in each.tokens.advice]
    return Inspection(directory, manifest, tools, sizes, tuple(warnings))


def _weigh(listing: Listing, tool: ManifestTool) -> ToolSize:
    schemas = json.dumps([tool.input_schema, tool.output_schema], separators=(",", ":"))
    return ToolSize(listing.name, tool, len(schemas), count_tool(listing.describe()))


def _of_plugin(
    directory: Path,
    manifest: PluginManifest,
    tools: tuple[ToolSize, ...],
    sizes: dict[str, int],
) -> Iterator[str]:
    if is_stale(directory):
        yield "dist/ is older than its source: run `opentabs build`"
    if manifest.sdk_version is None:
        yield UNKNOWN
    broad = [each for each in manifest.url_patterns if each in _EVERYWHERE]
    if broad:
        yield f"it asks for access to every page ({', '.join(broad)}): name its sites instead"
    if not manifest.tools:
        yield "it has no tools"
    if manifest.homepage is None and playground(directory) is None:
        yield "it has no homepage to open when the user has none of its pages open"
    adapter = sizes.get(ADAPTER, 0)
    if adapter > HEAVY_ADAPTER:
        yield (
            f"its adapter has {adapter:,} bytes, which each of its pages evaluates: bundle less "
            "(`import { z } from 'zod'` on its own line bundles only what is used)"
        )
    if (advice := advise_on_list([tool.tokens for tool in tools])) is not None:
        yield advice


def _of_tool(tool: ManifestTool) -> Iterator[str]:
    properties = tool.input_schema.get("properties")
    silent = [
        name
        for name, schema in (properties if isinstance(properties, dict) else {}).items()
        if isinstance(schema, dict) and not _is_described(schema)
    ]
    if silent:
        have = "has" if len(silent) == 1 else "have"
        yield f"{tool.name}: {', '.join(silent)} {have} no description: add .describe('…')"
    if tool.output_schema is None:
        yield f"{tool.name}: it has no output schema, so agents must guess what it returns"


def _is_described(schema: dict[str, Any]) -> bool:
    return bool(schema.get("description") or schema.get("const") or schema.get("$ref"))
