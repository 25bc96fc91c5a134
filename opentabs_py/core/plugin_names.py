"""The names of plugins and their tools: what is allowed, and what MCP clients see."""

import re
from typing import Final

from opentabs_py.core.text import HYPHENATED, shorten
from opentabs_py.errors import ConfigError

# Bounded by the names that contain a plugin's id: MCP names (2025-11-25, "Tool Names": 128
# characters) and staged file names (255 bytes in file systems, 256 characters on the wire).
LONGEST_ID: Final = 128
LONGEST_TOOL_NAME: Final = 128
OURSELVES: Final = "opentabs"  # what owns the tools of our own; a reserved id
HANDS: Final = "hands"  # what owns the tools that use any page; a reserved id
RESERVED_IDS: Final = frozenset(
    {OURSELVES, HANDS, "system", "browser", "extension", "config", "plugin", "tool", "mcp"}
    | {"default"}  # in permissions, it stands for every plugin
)
PAGE: Final = "@page"  # stands for a page's own tools, where plugins have a name; no plugin id
TABS_LIST: Final = "tabs_list"
TABS_OPEN: Final = "tabs_open"
TABS_CLOSE: Final = "tabs_close"
GATEWAY_CALL: Final = "opentabs_call"
RESERVED_TOOLS: Final = (TABS_LIST, TABS_OPEN, TABS_CLOSE)  # MCP names of tools of our own
STREAM_TOOLS: Final = ("stream_read", "stream_stop")  # the same, beside Python tools with streams

_PACKAGE: Final = re.compile(r"(?:@(?P<scope>[^/]+)/)?opentabs-plugin-(?P<name>[^/]+)")
_HOUSE_SCOPE: Final = "opentabs-dev"  # its plugins' ids omit the scope
_PLUGIN_ID: Final = re.compile(HYPHENATED)


def plugin_id(package_name: str) -> str:
    """Return the id of a plugin, derived from the name of its package.

    Raises:
        ValueError: The name is not a valid plugin package name, or its id is reserved.
    """
    found = _PACKAGE.fullmatch(package_name)
    quoted = repr(shorten(package_name))
    if found is None:
        raise ValueError(
            f"{quoted} is not a valid plugin package name; "
            "write 'opentabs-plugin-<name>' or '@<scope>/opentabs-plugin-<name>'"
        )
    scope: str | None = found["scope"]
    name: str = found["name"]
    plugin = name if scope in (None, _HOUSE_SCOPE) else f"{scope}-{name}"
    if not _PLUGIN_ID.fullmatch(plugin):
        raise ValueError(
            f"{quoted} would result in the plugin id {shorten(plugin)!r}; "
            "use lower-case letters and digits, with single '-' between them"
        )
    if len(plugin) > LONGEST_ID:
        raise ValueError(
            f"{quoted} would result in a plugin id of {len(plugin):,} characters; "
            f"choose a name that results in {LONGEST_ID} at most"
        )
    if plugin in RESERVED_IDS:
        raise ValueError(f"the plugin id {plugin!r} is reserved; choose another name")
    return plugin


def mcp_name(plugin: str, tool: str) -> str:
    """Return the name under which MCP clients see a plugin's tool."""
    return f"{plugin.replace('-', '_')}_{tool}"


def own_name(owner: str, name: str) -> str:
    """Return a tool's name within its owner, given its MCP name."""
    return name.removeprefix(mcp_name(owner, "")) or name


def qualified_names(plugin: str, tool: str) -> tuple[str, ...]:
    """Return the other names, besides its MCP name, by which a plugin's tool can be called.

    They are `plugin__tool`, with the plugin's id as is or with `_` for each `-`. No two tools
    share one, because neither plugin ids nor tool names contain two underscores in a row.
    """
    return tuple(dict.fromkeys(f"{each}__{tool}" for each in (plugin, plugin.replace("-", "_"))))


def same_name(name: str, which: str) -> ConfigError:
    """Return the error for a tool written in Python that has the name of another tool.

    Args:
        name: The name.
        which: Where both are, as in "one from chat, one from mine".
    """
    return ConfigError(f'Two tools are named {name}: {which}. Rename one: @tool(name="...").')
