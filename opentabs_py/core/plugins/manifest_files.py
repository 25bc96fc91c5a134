"""Parse and validate the files in which a plugin describes itself.

A built plugin describes itself in two files: `package.json`, whose `opentabs` member
says which pages it is for, and `dist/tools.json`, which lists its tools. Both come from
third-party builds, so unknown members are ignored, and one error reports every problem:
an author can fix a plugin in one go.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from opentabs_py.core.json_numbers import refuse_constant
from opentabs_py.core.page_arguments import TAB_ID
from opentabs_py.core.plugin_names import LONGEST_TOOL_NAME, mcp_name, plugin_id
from opentabs_py.core.plugins.file_names import BUILT_TOOLS, PACKAGE, PRE_SCRIPT
from opentabs_py.core.plugins.manifest import DEFAULT_ICON, ManifestTool, PluginManifest
from opentabs_py.core.plugins.manifest_problems import WHAT_TO_WRITE, Problem, problem_of
from opentabs_py.core.plugins.sdk_version import KNOWN, is_newer, is_version
from opentabs_py.core.plugins.settings import (
    find_schema_problems,
    resolve_values,
    url_setting_patterns,
)
from opentabs_py.core.protocol import Name
from opentabs_py.core.schemas.checker import JsonObject, check_schema
from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.core.text import quantity, shorten, show_value
from opentabs_py.errors import PluginError

LONGEST_HOMEPAGE: Final = 2048  # characters; errors quote it, and servers reject longer URLs
LONGEST_ICON: Final = 64 * 1024  # characters; of 120 public plugins, the largest has 9,000
LONGEST_FILE: Final = 255  # characters; file systems allow 255 bytes per name

_TOOL_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_RELATIVE_FILE: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)*")  # no leading dot in a segment


def parse_plugin(package_json: str | bytes, tools_json: str | bytes) -> PluginManifest:
    """Parse the contents of a built plugin's two files.

    Raises:
        PluginError: The text has a line for each problem, with the file, the path of the
            member, the reason, and what to write instead.
    """
    package_raw, problems = _load(package_json)
    tools_raw, tools_problems = _load(tools_json)
    package, tools = _check(package_raw, problems, tools_raw, tools_problems)
    if package is None or tools is None or problems or tools_problems:
        root = 1 if isinstance(tools_raw, list) else 0
        lines = [f"{PACKAGE}: {problem.text()}" for problem in problems]
        lines += [f"{BUILT_TOOLS}: {problem.text(root=root)}" for problem in tools_problems]
        raise PluginError(_error_text(lines))
    about = package.opentabs
    return PluginManifest(
        name=plugin_id(package.name),
        version=package.version,
        display_name=about.display_name,
        description=about.description,
        url_patterns=tuple(about.url_patterns),
        exclude_patterns=tuple(about.exclude_patterns or ()),
        homepage=about.homepage,
        config_schema=about.config_schema or tools.config_schema or {},
        tools=tuple(_tool(tool) for tool in tools.tools),
        pre_script_file=tools.pre_script_file,
        sdk_version=tools.sdk_version,
        icon_svg=about.icon_svg or tools.icon_svg,
    )


def find_problems(package: JsonValue, tools: JsonValue) -> tuple[list[Problem], list[Problem]]:
    """Return the problems of a plugin's two parsed files."""
    problems: list[Problem] = []
    tools_problems: list[Problem] = []
    _check(package, problems, tools, tools_problems)
    return problems, tools_problems


def _check(
    package_raw: JsonValue,
    problems: list[Problem],
    tools_raw: JsonValue,
    tools_problems: list[Problem],
) -> tuple["_PackageFile | None", "_ToolsFile | None"]:
    if isinstance(tools_raw, list):  # the format of old builds
        tools_raw = {"tools": tools_raw}
    package = _validate(_PackageFile, package_raw, problems)
    if newer := _newer_sdk(tools_raw):  # may have changed the meaning of everything else
        tools_problems.append(newer)
        return package, None
    tools = _validate(_ToolsFile, tools_raw, tools_problems)
    problems += _pattern_problems(package_raw, tools_raw)
    problems += _settings_problems(package_raw, "opentabs", "configSchema")
    tools_problems += _duplicate_problems(tools_raw)
    if package is not None and tools is not None:
        tools_problems += _name_problems(plugin_id(package.name), tools.tools)
    tools_problems += _settings_problems(tools_raw, "configSchema")
    return package, tools


def find_sites(
    package_json: str | bytes, settings: Mapping[str, Mapping[str, object]]
) -> tuple[str, ...]:
    """Return the match patterns a plugin will have once built; none if it is broken.

    Args:
        package_json: The file's content.
        settings: The values of plugins' settings, by plugin and key.
    """
    raw, problems = _load(package_json)
    package = _validate(_PackageFile, raw, problems)
    problems += _settings_problems(raw, "opentabs", "configSchema")
    if package is None or problems:
        return ()
    name, about = plugin_id(package.name), package.opentabs
    schema = about.config_schema or {}
    try:
        values = resolve_values(name, schema, settings.get(name, {}))
    except PluginError:
        values = {}
    return (*about.url_patterns, *url_setting_patterns(schema, values))


# --- single values ---


def _plugin_package(name: str) -> str:
    plugin_id(name)
    return name


def _match_pattern(pattern: str) -> str:
    parse_match_pattern(pattern)
    return pattern


def _web_address(address: str) -> str:
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in ("http", "https") and parts.hostname is not None
    except ValueError:
        is_web = False
    if not is_web or any(c.isspace() or not c.isprintable() for c in address):
        raise ValueError(
            f"is {show_value(address)}, not an http or https URL; "
            "write one, for example 'https://example.com/', or leave it out"
        )
    return address


def _tool_name(name: str) -> str:
    if not _TOOL_NAME.fullmatch(name):
        raise ValueError(
            f"{shorten(name)!r} is not a valid tool name; write lower-case words joined by '_', "
            "starting with a letter, for example 'send_message'"
        )
    return name


def _file_in_dist(path: str) -> str:
    inside = path.removeprefix("dist/")
    if len(inside) > LONGEST_FILE or not _RELATIVE_FILE.fullmatch(inside):
        raise ValueError(
            f"{shorten(path)!r} is not a file in the plugin's dist directory; "
            f"write its name, for example {PRE_SCRIPT!r}"
        )
    return inside


def _sdk_version(version: str) -> str:
    if not is_version(version):
        raise ValueError(f"is {show_value(version)}, not a version; {WHAT_TO_WRITE['sdkVersion']}")
    return version


def _optional_schema(schema: JsonObject | None) -> JsonObject | None:
    if schema is not None:
        check_schema(schema)
    return schema


def _arguments_schema(schema: JsonObject) -> JsonObject:
    check_schema(schema)
    if schema.get("type") != "object":
        raise ValueError(
            f"has the root type {show_value(schema.get('type'))}, but a tool's arguments are "
            'named; write "type": "object"'
        )
    properties = schema.get("properties")
    if isinstance(properties, dict) and TAB_ID in properties:
        raise ValueError(
            f"has a property {TAB_ID!r}, but OpenTabs adds that to every tool to choose the tab; "
            "use another name"
        )
    return schema


# --- the files ---


class _File(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel)


_Text = Annotated[str, Field(min_length=1)]
_Patterns = list[Annotated[str, AfterValidator(_match_pattern)]]
_Object = dict[str, Any]  # parsed from JSON, so pydantic need not validate it again
_Settings = dict[str, _Object]


def _icon(given: object) -> str | None:
    """Return an icon, if it can be one: a plugin works without."""
    return given if isinstance(given, str) and 0 < len(given) <= LONGEST_ICON else None


_Icon = Annotated[str | None, BeforeValidator(_icon)]


class _About(_File):
    display_name: _Text
    description: _Text
    url_patterns: _Patterns
    exclude_patterns: _Patterns | None = None
    homepage: (
        Annotated[str, Field(max_length=LONGEST_HOMEPAGE), AfterValidator(_web_address)] | None
    ) = None
    config_schema: _Settings | None = None
    icon_svg: _Icon = None


class _PackageFile(_File):
    name: Annotated[str, AfterValidator(_plugin_package)]
    version: Name
    opentabs: _About


class _Annotations(_File):
    """The hints MCP 2025-11-25 and 2026-07-28 define; others are ignored."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None

    def hints(self) -> JsonObject:
        """Return the hints that the tool sets."""
        return self.model_dump(by_alias=True, exclude_none=True)


class _Tool(_File):
    name: Annotated[str, AfterValidator(_tool_name)]
    display_name: _Text
    description: _Text
    summary: str | None = None
    icon: str | None = None
    group: str | None = None
    input_schema: Annotated[_Object, AfterValidator(_arguments_schema), Field(alias="input_schema")]
    output_schema: Annotated[
        _Object | None, AfterValidator(_optional_schema), Field(alias="output_schema")
    ] = None
    annotations: _Annotations | None = None


class _ToolsFile(_File):
    sdk_version: Annotated[str, AfterValidator(_sdk_version)] | None = None
    tools: list[_Tool]
    config_schema: _Settings | None = None
    pre_script_file: Annotated[str, AfterValidator(_file_in_dist)] | None = None
    icon_svg: _Icon = None


def _tool(tool: _Tool) -> ManifestTool:
    return ManifestTool(
        name=tool.name,
        display_name=tool.display_name,
        description=tool.description,
        summary=tool.summary,
        icon=tool.icon or DEFAULT_ICON,
        group=tool.group,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=None if tool.annotations is None else tool.annotations.hints(),
    )


# --- the problems ---

_AnyFile = TypeVar("_AnyFile", bound=_File)


def _load(text: str | bytes) -> tuple[JsonValue, list[Problem]]:
    try:
        value: JsonValue = json.loads(text, parse_constant=refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()  # what cannot be encoded cannot be forwarded
    except RecursionError:
        why = "nested too deeply"
    except ValueError as error:  # invalid JSON, encoding, or number
        why = str(error)
    else:
        return value, []
    return None, [Problem((), f"is not JSON: {why}; build the plugin again")]


def _validate(model: type[_AnyFile], value: JsonValue, problems: list[Problem]) -> _AnyFile | None:
    """Return the validated file, or None after adding its problems to `problems`."""
    if problems:
        return None
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems += [problem_of(details) for details in error.errors()]
        return None


def _newer_sdk(tools: JsonValue) -> Problem | None:
    version = tools.get("sdkVersion") if isinstance(tools, dict) else None
    if not isinstance(version, str) or not is_newer(version):
        return None
    known = ".".join(map(str, KNOWN))
    return Problem(
        ("sdkVersion",),
        f"is {shorten(version)}, but this version of opentabs-py supports the plugin SDK only up "
        f"to {known}; install a newer one, or build the plugin again with this one",
    )


def _pattern_problems(package: JsonValue, tools: JsonValue) -> Iterator[Problem]:
    about = package.get("opentabs") if isinstance(package, dict) else None
    if not isinstance(about, dict) or about.get("urlPatterns") != []:
        return
    settings = [
        about.get("configSchema"),
        tools.get("configSchema") if isinstance(tools, dict) else None,
    ]
    if not any(_asks_for_url(schema) for schema in settings):
        yield Problem(
            ("opentabs", "urlPatterns"),
            'is empty; write the pages the plugin is for, such as ["*://*.example.com/*"], '
            'or add a required setting of type "url" to configSchema',
        )


def _asks_for_url(settings: JsonValue) -> bool:
    return isinstance(settings, dict) and any(
        isinstance(setting, dict)
        and setting.get("type") == "url"
        and setting.get("required") is True
        for setting in settings.values()
    )


def _settings_problems(file: JsonValue, *path: str) -> Iterator[Problem]:
    declared = file
    for step in path:
        declared = declared.get(step) if isinstance(declared, dict) else None
    if isinstance(declared, dict):
        for at, why in find_schema_problems(declared):
            yield Problem((*path, *at), why)


def _duplicate_problems(tools: JsonValue) -> Iterator[Problem]:
    listed = tools.get("tools") if isinstance(tools, dict) else None
    first: dict[str, int] = {}
    for index, tool in enumerate(listed if isinstance(listed, list) else []):
        name = tool.get("name") if isinstance(tool, dict) else None
        if isinstance(name, str) and first.setdefault(name, index) != index:
            yield Problem(
                ("tools", index, "name"),
                f"{name!r} is also the name of tools[{first[name]}]; give each tool its own name",
            )


def _name_problems(plugin: str, tools: Sequence[_Tool]) -> Iterator[Problem]:
    others = {mcp_name(plugin, tool.name): index for index, tool in enumerate(tools)}
    for index, tool in enumerate(tools):
        if (other := others.get(tool.name)) is not None:
            yield Problem(
                ("tools", index, "name"),
                f"MCP clients and permissions call tools[{other}] {tool.name!r}; "
                "give this tool another name",
            )
        length = len(mcp_name(plugin, tool.name))
        if length > LONGEST_TOOL_NAME:
            yield Problem(
                ("tools", index, "name"),
                f"{shorten(tool.name)!r} would be a name of {length:,} characters for MCP clients, "
                f"with the plugin's id in front; {LONGEST_TOOL_NAME} are allowed, so shorten it",
            )


def _error_text(lines: Sequence[str]) -> str:
    problems = quantity(len(lines), "problem")
    return "\n  ".join([f"The plugin is not valid; it has {problems}:", *lines])
