"""Turn a plugin's source description into `dist/tools.json`, and find its problems.

The builder imports the source and reports what it found (`adapter_js/builder/describe.js`);
this module turns that report into `tools.json`, under the same rules that loading applies.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

from opentabs_py.core.plugin_names import plugin_id
from opentabs_py.core.plugins.file_names import ADAPTER, PACKAGE, PRE_SCRIPT
from opentabs_py.core.plugins.manifest import DEFAULT_ICON, HINTS
from opentabs_py.core.plugins.manifest_files import find_problems
from opentabs_py.core.sites.match_patterns import parse as parse_match_pattern
from opentabs_py.core.text import HYPHENATED, did_you_mean, nearest, path_text, show_value

_NOTHING: Final[dict[str, JsonValue]] = {"type": "object"}
_MEMBERS: Final = {"input_schema": "input", "output_schema": "output"}
_TOOL_MEMBERS: Final = (
    *("name", "displayName", "description", "summary", "icon", "group", "annotations"),
    *("input", "output", "handle"),
)
_HINTS: Final = ("title", *HINTS)
_PLUGIN_NAME: Final = re.compile(HYPHENATED)


@dataclass(frozen=True, slots=True)
class SourceProblem:
    """A problem in a plugin's source.

    Attributes:
        file: Relative to the plugin's directory.
        line: Starting at 1; None when only the file is known.
        tool: The affected tool, or None.
        path: The affected member, for example `input.channel.name`; may be empty.
        why: What is wrong, and what to write instead.
    """

    file: str
    line: int | None = None
    tool: str | None = None
    path: str = ""
    why: str = field(kw_only=True)

    @property
    def place(self) -> str:
        """The file, with its line if that is known."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def subject(self) -> str:
        """The tool and the member; empty if it is about neither."""
        return " ".join(filter(None, [self.tool, self.path]))

    @property
    def text(self) -> str:
        """What is wrong with what."""
        return f"{self.subject}: {self.why}" if self.subject else self.why

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class Icons(Protocol):
    """The icons that a tool may name."""

    def names(self) -> Sequence[str]:
        """Return the names of all icons."""
        ...

    def svg(self, name: str) -> str | None:
        """Return the icon as an SVG document, or None if no icon has that name."""
        ...


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel)


class SchemaProblem(_Report):
    """A problem in one of a tool's schemas."""

    path: str
    why: str


class ToolReport(_Report):
    """A tool as the builder found it; `input` and `output` are None when they have problems.

    `members` are the names of all its members.
    """

    file: str
    line: int | None
    fields: dict[str, Any]
    input: dict[str, Any] | None
    output: dict[str, Any] | None
    problems: list[SchemaProblem]
    members: list[str]


class Description(_Report):
    """A plugin as the builder found it; `plugin` is None when the source exports none."""

    plugin: dict[str, Any] | None
    tools: list[ToolReport]


class CodeProblem(_Report):
    """A problem that prevented the source from being bundled or imported."""

    file: str
    line: int | None
    why: str


class BuildReport(_Report):
    """The builder's answer; `files` maps each file name in `dist/` to its content."""

    description: Description
    files: dict[str, str]
    problems: list[CodeProblem]
    warnings: list[CodeProblem]


def find_source_problems(
    package: JsonValue, report: BuildReport, *, entry: str, icons: Icons
) -> list[SourceProblem]:
    """Return every problem in a plugin's source.

    Args:
        package: The parsed `package.json`.
        report: What the builder found.
        entry: The module that exports the plugin, relative to the plugin's directory.
        icons: The icons that tools may use.
    """
    found = [SourceProblem(f.file or entry, f.line, why=f.why) for f in report.problems]
    tools = report.description.tools
    # The builder has already reported what is not valid JSON Schema; check the rest anyway.
    listed: JsonValue = {"tools": [_tool_json(tool, icons) for tool in tools]}
    in_package, in_tools = find_problems(package, listed)
    found += [SourceProblem(PACKAGE, path=path_text(f.path), why=f.why) for f in in_package]
    if (plugin := report.description.plugin) is not None:
        of_plugin = _plugin_problems(package, plugin, entry)
        if not (in_package or of_plugin):
            of_plugin = [*_contradictions(package, plugin, entry)]
        found += of_plugin
    for index, tool in enumerate(tools):
        name = _name(tool, index)
        file = tool.file or entry
        found += [SourceProblem(file, tool.line, name, f.path, why=f.why) for f in tool.problems]
        for problem in in_tools:
            if problem.path[:2] == ("tools", index):
                path = [_MEMBERS.get(str(problem.path[2]), problem.path[2]), *problem.path[3:]]
                text = path_text(path)
                found.append(SourceProblem(file, tool.line, name, text, why=problem.why))
        found += _icon_problems(tool, file, name, icons)
    return found


def find_source_warnings(report: BuildReport, *, entry: str) -> list[SourceProblem]:
    """Return what may be wrong in a plugin's source.

    Args:
        report: What the builder found.
        entry: The module that exports the plugin, relative to the plugin's directory.
    """
    found = [SourceProblem(w.file or entry, w.line, why=w.why) for w in report.warnings]
    for index, tool in enumerate(report.description.tools):
        for path, why in _misspelt(tool):
            found.append(
                SourceProblem(tool.file or entry, tool.line, _name(tool, index), path, why=why)
            )
    return found


def tools_json(
    package: Mapping[str, Any],
    report: BuildReport,
    *,
    icons: Icons,
    sdk_version: str,
    hashes: Mapping[str, str],
) -> dict[str, Any]:
    """Return the contents of `dist/tools.json` for a source without problems.

    Args:
        package: The parsed `package.json`.
        report: What the builder found.
        icons: The SVG of each tool's icon is included.
        sdk_version: Version of the bundled SDK.
        hashes: The SHA-256 of each file in `dist/`, by file name.
    """
    plugin = report.description.plugin or {}
    document: dict[str, Any] = {"sdkVersion": sdk_version}
    if "configSchema" in plugin and "configSchema" not in package["opentabs"]:
        document["configSchema"] = plugin["configSchema"]
    if PRE_SCRIPT in hashes:
        document["preScriptFile"] = PRE_SCRIPT
        document["preScriptHash"] = hashes[PRE_SCRIPT]
    document["adapterHash"] = hashes[ADAPTER]
    document["tools"] = [_tool_json(tool, icons) for tool in report.description.tools]
    return document


def display_name(name: str) -> str:
    """Return a tool's name in title case: `send_message` becomes `Send Message`."""
    return " ".join(word.capitalize() for word in name.split("_"))


def _tool_json(tool: ToolReport, icons: Icons) -> dict[str, Any]:
    fields = tool.fields
    icon = fields.get("icon", DEFAULT_ICON)
    svg = icons.svg(icon) if isinstance(icon, str) else None
    return {
        **{key: fields[key] for key in ("name",) if key in fields},  # comes first
        "displayName": display_name(str(fields.get("name"))),
        **fields,
        "icon": icon,
        **({} if svg is None else {"iconSvg": svg}),
        "input_schema": tool.input or _NOTHING,
        "output_schema": tool.output or _NOTHING,
    }


def _name(tool: ToolReport, index: int) -> str:
    name = tool.fields.get("name")
    return name if isinstance(name, str) and name else f"tools[{index}]"


def _misspelt(tool: ToolReport) -> Iterator[tuple[str, str]]:
    """Yield the members of a tool that mean nothing but are named like one that does."""
    for name in tool.members:
        if name in _TOOL_MEMBERS:
            continue
        if name in _HINTS:
            yield name, f"has no effect here; write annotations: {{ {name}: … }}"
        elif near := nearest(name, [*_TOOL_MEMBERS, *_HINTS]):
            yield name, f"has no effect; {did_you_mean(near[:1])}"
    annotations: JsonValue = tool.fields.get("annotations")
    for name in annotations if isinstance(annotations, dict) else ():
        if name not in _HINTS and (near := nearest(name, _HINTS)):
            yield f"annotations.{name}", f"has no effect; {did_you_mean(near[:1])}"


def _icon_problems(tool: ToolReport, file: str, name: str, icons: Icons) -> list[SourceProblem]:
    icon = tool.fields.get("icon", DEFAULT_ICON)
    if not isinstance(icon, str):
        return []  # already reported
    if icons.svg(icon) is not None:
        return []
    hint = did_you_mean(nearest(icon, icons.names())) or "see https://lucide.dev/icons"
    why = f"{icon!r} is not a Lucide icon; {hint}"
    return [SourceProblem(file, tool.line, name, "icon", why=why)]


def _plugin_problems(
    package: JsonValue, plugin: Mapping[str, Any], entry: str
) -> list[SourceProblem]:
    def problem(path: str, why: str) -> SourceProblem:
        return SourceProblem(entry, path=path, why=why)

    found = [
        problem(member, f"is missing; {what}")
        for member, what in (
            ("displayName", "write the name that users see, for example 'Chat'"),
            ("description", "write a sentence that says what the plugin is for"),
        )
        if not plugin.get(member)
    ]
    if (why := _name_problem(package, plugin.get("name"))) is not None:
        found.append(problem("name", why))
    for member in ("urlPatterns", "excludePatterns"):
        patterns: JsonValue = plugin.get(member, [])
        if not isinstance(patterns, list):
            why = "is not a list; write one, for example ['*://*.example.com/*']"
            found.append(problem(member, why))
            continue
        for index, pattern in enumerate(patterns):
            try:
                parse_match_pattern(str(pattern))
            except ValueError as error:
                found.append(problem(f"{member}[{index}]", str(error)))
    return found


def _contradictions(package: Any, plugin: Mapping[str, Any], entry: str) -> Iterator[SourceProblem]:
    """Yield where the class has other pages than `package.json`, which is what servers read."""
    about = package["opentabs"]
    for member in ("urlPatterns", "excludePatterns", "homepage"):
        if (ours := plugin.get(member)) is None:
            continue
        theirs = about.get(member)
        is_same = ours == theirs if member == "homepage" else {*ours} == {*(theirs or ())}
        if not is_same:
            has = "none" if theirs is None else show_value(theirs)
            why = f"is {show_value(ours)}, but servers read {PACKAGE}, which has {has}; "
            why += "make them the same"
            yield SourceProblem(entry, path=member, why=why)


def _name_problem(package: JsonValue, name: object) -> str | None:
    if name is None:
        return "is missing; write the name that its tools' names begin with, for example 'chat'"
    if not isinstance(name, str) or not _PLUGIN_NAME.fullmatch(name):
        return (
            f"{name!r} is not a valid plugin name; use lower-case letters, digits and '-', "
            "for example 'chat'"
        )
    package_name = package.get("name") if isinstance(package, dict) else None
    if not isinstance(package_name, str):
        return None
    bare = package_name.rpartition("opentabs-plugin-")[2]
    try:
        plugin = plugin_id(package_name)
    except ValueError:
        return None  # already reported
    if name in (plugin, bare):
        return None
    return f"is {name!r}, but {PACKAGE} names the plugin {plugin!r}; make them the same"
