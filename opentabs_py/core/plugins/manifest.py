"""A validated plugin manifest."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pydantic import JsonValue

from opentabs_py.core.page_arguments import INSTANCE
from opentabs_py.core.plugin_names import OURSELVES, RESERVED_TOOLS, mcp_name
from opentabs_py.core.plugins.settings import url_setting_patterns
from opentabs_py.core.schemas.checker import JsonObject
from opentabs_py.core.sites.instances import Instances, find_instances
from opentabs_py.errors import PluginError

DEFAULT_ICON: Final = "wrench"  # of Lucide's
HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""The annotations of MCP that are true or false."""


@dataclass(frozen=True, slots=True)
class ManifestTool:
    """A tool as its plugin describes it.

    Attributes:
        name: Its name within the plugin, for example `send_message`.
        display_name: Its name for users.
        description: What it does, for agents.
        summary: The same in a few words, for users.
        icon: The name of its icon.
        group: The heading it is listed under.
        input_schema: JSON Schema of its arguments; `type` at the root is `object`.
        output_schema: JSON Schema of its value, of any type.
        annotations: The hints MCP defines, for example `{"readOnlyHint": true}`.
    """

    name: str
    display_name: str
    description: str
    summary: str | None
    icon: str
    group: str | None
    input_schema: JsonObject
    output_schema: JsonObject | None
    annotations: JsonObject | None


@dataclass(frozen=True, slots=True)
class PluginManifest:
    """A plugin's validated manifest.

    Attributes:
        name: The plugin's id, under which its adapter registers; also its tools' prefix.
        version: As in `package.json`.
        display_name: Its name for users.
        description: What it is for.
        url_patterns: Match patterns of its pages; empty when a setting gives the URL.
        exclude_patterns: Match patterns of pages to exclude from those.
        homepage: Where to send a user who has no such page open.
        config_schema: The declarations of its settings, by key.
        tools: In the order of the file; names are unique.
        pre_script_file: A script to run before the page's own, relative to `dist/`.
        sdk_version: The version of the SDK it was built with, if stated.
        icon_svg: Its icon, an SVG document, not checked.
        instances: The instances of its site that the user's settings name.
    """

    name: str
    version: str
    display_name: str
    description: str
    url_patterns: tuple[str, ...]
    exclude_patterns: tuple[str, ...]
    homepage: str | None
    config_schema: dict[str, JsonObject]
    tools: tuple[ManifestTool, ...]
    pre_script_file: str | None
    sdk_version: str | None = None
    icon_svg: str | None = field(default=None, repr=False)
    instances: Instances = field(default_factory=Instances, repr=False)


def configure(manifest: PluginManifest, values: Mapping[str, JsonValue]) -> PluginManifest:
    """Return the manifest with the pages and instances that its settings' values add.

    Raises:
        PluginError: There are several instances, but a tool has its own `instance` argument.
    """
    schema = manifest.config_schema
    instances = find_instances(schema, values)
    for tool in manifest.tools if instances.names else ():
        properties = tool.input_schema.get("properties")
        if isinstance(properties, dict) and INSTANCE in properties:
            raise PluginError(
                f"The plugin {manifest.name!r} cannot have several instances: its tool "
                f"{tool.name!r} has its own argument {INSTANCE!r}. Set only one URL."
            )
    patterns = dict.fromkeys((*manifest.url_patterns, *url_setting_patterns(schema, values)))
    return replace(manifest, url_patterns=tuple(patterns), instances=instances)


def find_name_clashes(manifests: Iterable[PluginManifest]) -> dict[str, list[tuple[str, str]]]:
    """Return the MCP names that several tools would get, with each tool's `(plugin, tool)`.

    The names of our own tools are taken.
    """
    owners: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for name in RESERVED_TOOLS:
        owners[name].append((OURSELVES, name))
    for manifest in manifests:
        for tool in manifest.tools:
            owners[mcp_name(manifest.name, tool.name)].append((manifest.name, tool.name))
    return {name: tools for name, tools in owners.items() if len(tools) > 1}
