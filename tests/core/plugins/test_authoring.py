"""What a plugin's source declares, and its problems."""

from collections.abc import Sequence
from typing import Any

import pytest

from opentabs_py.core.plugins.authoring import (
    BuildReport,
    SourceProblem,
    display_name,
    find_source_problems,
    find_source_warnings,
    tools_json,
)

ENTRY = "src/index.ts"
PACKAGE: dict[str, Any] = {
    "name": "@acme/opentabs-plugin-chat",
    "version": "1.0.0",
    "opentabs": {
        "displayName": "Chat",
        "description": "Chats",
        "urlPatterns": ["https://chat.example.com/*"],
    },
}
PLUGIN = {
    "name": "chat",
    "displayName": "Chat",
    "description": "Chats",
    "urlPatterns": ["https://chat.example.com/*"],
}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


class Icons:
    def names(self) -> Sequence[str]:
        return ["wrench", "send", "sun"]

    def svg(self, name: str) -> str | None:
        return f"<svg>{name}</svg>" if name in self.names() else None


def tool(**changes: Any) -> dict[str, Any]:
    report = {
        "file": "src/tools/send.ts",
        "line": 4,
        "fields": {"name": "send_message", "description": "Send", "icon": "send"},
        "input": SCHEMA,
        "output": {"type": "object"},
        "problems": [],
        "members": ["name", "description", "icon", "input", "output", "handle"],
    }
    return {**report, **changes}


def report(*tools: dict[str, Any], plugin: Any = PLUGIN, **changes: Any) -> BuildReport:
    return BuildReport.model_validate(
        {
            "description": {"plugin": plugin, "tools": list(tools)},
            "files": {},
            "problems": [],
            "warnings": [],
            **changes,
        }
    )


def problems(built: BuildReport, package: Any = PACKAGE) -> list[SourceProblem]:
    return find_source_problems(package, built, entry=ENTRY, icons=Icons())


def said(built: BuildReport, package: Any = PACKAGE) -> list[str]:
    return [str(problem) for problem in problems(built, package)]


def test_a_sound_plugin_has_no_problems() -> None:
    assert problems(report(tool())) == []


@pytest.mark.parametrize("name", ["acme-chat", "chat"])
def test_the_class_may_name_the_plugin_with_or_without_its_scope(name: str) -> None:
    assert problems(report(tool(), plugin={**PLUGIN, "name": name})) == []


def test_a_problem_in_the_code_is_reported_with_its_place() -> None:
    built = report(
        plugin=None,
        problems=[
            {"file": "src/a.ts", "line": 3, "why": "Unexpected token"},
            {"file": "", "line": None, "why": "cannot be imported"},
        ],
    )

    assert said(built) == ["src/a.ts:3: Unexpected token", "src/index.ts: cannot be imported"]


def test_a_problem_of_a_tool_is_reported_with_its_file_its_name_and_the_path() -> None:
    problem = {"path": "input.when", "why": "uses z.date()"}

    [found] = problems(report(tool(input=None, problems=[problem])))

    assert found == SourceProblem(
        "src/tools/send.ts", 4, "send_message", "input.when", why="uses z.date()"
    )


def test_a_tool_that_was_not_defined_by_define_tool_is_reported_at_the_entry() -> None:
    fields = {"name": "Send", "description": "Send"}

    [text] = said(report(tool(file="", line=None, fields=fields)))

    assert text.startswith("src/index.ts: Send name: 'Send' is not a valid tool name")


def test_a_tool_without_a_name_is_reported_by_its_index() -> None:
    [text] = said(report(tool(), tool(fields={"description": "Send"})))

    assert text.startswith("src/tools/send.ts:4: tools[1] name: is missing; write")


def test_two_tools_of_one_name_are_reported() -> None:
    [text] = said(report(tool(), tool(file="src/tools/other.ts")))

    assert text.startswith(
        "src/tools/other.ts:4: send_message name: 'send_message' is also the name"
    )


def test_a_missing_description_is_reported() -> None:
    [text] = said(report(tool(fields={"name": "send_message"})))

    assert "send_message description: is missing; write what the tool does" in text


def test_a_schema_that_breaks_the_rules_of_loading_is_reported_by_its_name_in_the_source() -> None:
    schema = {"type": "object", "properties": {"tabId": {"type": "number"}}}

    [text] = said(report(tool(input=schema)))

    assert text.startswith("src/tools/send.ts:4: send_message input: has a property 'tabId'")


def test_a_wrong_icon_is_reported_with_the_closest_ones() -> None:
    fields = {"name": "send_message", "description": "Send", "icon": "wrnch"}

    [text] = said(report(tool(fields=fields)))

    assert text.endswith("send_message icon: 'wrnch' is not a Lucide icon; did you mean 'wrench'?")


def test_an_unknown_icon_is_reported_with_the_list_of_all() -> None:
    fields = {"name": "send_message", "description": "Send", "icon": "qqqqqq"}

    [text] = said(report(tool(fields=fields)))

    assert text.endswith("icon; see https://lucide.dev/icons")


def test_an_icon_that_is_not_a_string_is_reported_once() -> None:
    fields = {"name": "send_message", "description": "Send", "icon": 5}

    [text] = said(report(tool(fields=fields)))

    assert "send_message icon: is 5, not a string" in text


def test_problems_of_package_json_are_reported_by_path() -> None:
    package = {**PACKAGE, "opentabs": {**PACKAGE["opentabs"], "urlPatterns": ["nonsense"]}}

    [text] = said(report(tool()), package)

    assert text.startswith("package.json: opentabs.urlPatterns[0]: 'nonsense' has no scheme")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"displayName": ""}, "displayName: is missing; write the name that users see"),
        ({"description": None}, "description: is missing; write a sentence"),
        ({"name": "My Chat"}, "name: 'My Chat' is not a valid plugin name; use lower-case"),
        ({"name": None}, "name: is missing; write the name that its tools' names begin with"),
        ({"name": 5}, "name: 5 is not a valid plugin name"),
        ({"name": "mail"}, "name: is 'mail', but package.json names the plugin 'acme-chat'"),
        ({"urlPatterns": ["nonsense"]}, "urlPatterns[0]: 'nonsense' has no scheme"),
        ({"urlPatterns": [5]}, "urlPatterns[0]: "),
        ({"excludePatterns": "x"}, "excludePatterns: is not a list; write one"),
    ],
)
def test_problems_of_the_class_are_reported_by_member(changes: dict[str, Any], wanted: str) -> None:
    [text] = said(report(tool(), plugin={**PLUGIN, **changes}))

    assert text.startswith(f"src/index.ts: {wanted}")


@pytest.mark.parametrize(
    ("member", "value", "has"),
    [
        ("urlPatterns", ["https://other.example/*"], '["https://chat.example.com/*"]'),
        ("excludePatterns", ["https://chat.example.com/help/*"], "none"),
        ("homepage", "https://chat.example.com/", "none"),
    ],
)
def test_pages_that_package_json_does_not_have_are_a_problem(
    member: str, value: Any, has: str
) -> None:
    [text] = said(report(tool(), plugin={**PLUGIN, member: value}))

    assert text.startswith(f"src/index.ts: {member}: is ")
    assert text.endswith(f"but servers read package.json, which has {has}; make them the same")


def test_pages_that_package_json_has_in_another_order_are_not_a_problem() -> None:
    pages = ["https://a.example/*", "https://b.example/*"]
    about = {"urlPatterns": pages, "excludePatterns": [], "homepage": "https://a.example/"}
    package = {**PACKAGE, "opentabs": {**PACKAGE["opentabs"], **about}}
    plugin = {**PLUGIN, **about, "urlPatterns": pages[::-1]}

    assert said(report(tool(), plugin=plugin), package) == []


@pytest.mark.parametrize("name", [None, "chat"])
def test_a_package_that_names_no_plugin_is_one_problem(name: str | None) -> None:
    package = {**PACKAGE, "name": name}

    [text] = said(report(tool()), package)

    assert text.startswith("package.json: name: ")


def test_a_package_that_is_not_an_object_is_reported_with_the_other_problems() -> None:
    texts = said(report(tool(fields={"name": "a", "description": ""})), [])

    assert [text.partition(":")[0] for text in texts] == ["package.json", "src/tools/send.ts"]


def test_all_problems_are_reported_together() -> None:
    first = tool(input=None, problems=[{"path": "input.a", "why": "uses .transform()"}])
    second = tool(fields={"name": "B", "icon": "no"})

    places = [(problem.tool, problem.path) for problem in problems(report(first, second))]

    assert places == [
        ("send_message", "input.a"),
        ("B", "name"),
        ("B", "description"),
        ("B", "icon"),
    ]


def write(built: BuildReport, package: Any = PACKAGE, **hashes: str) -> dict[str, Any]:
    named = {"adapter.iife.js": "aa", **hashes}
    return tools_json(package, built, icons=Icons(), sdk_version="0.1.0", hashes=named)


def test_a_tool_is_written_with_its_schemas_and_the_icon_itself() -> None:
    assert write(report(tool())) == {
        "sdkVersion": "0.1.0",
        "adapterHash": "aa",
        "tools": [
            {
                "name": "send_message",
                "displayName": "Send Message",
                "description": "Send",
                "icon": "send",
                "iconSvg": "<svg>send</svg>",
                "input_schema": SCHEMA,
                "output_schema": {"type": "object"},
            }
        ],
    }


def test_a_tool_without_an_icon_gets_the_wrench() -> None:
    [written] = write(report(tool(fields={"name": "a", "description": "b"})))["tools"]

    assert (written["icon"], written["iconSvg"]) == ("wrench", "<svg>wrench</svg>")


def test_the_name_for_users_is_the_authors_if_there_is_one() -> None:
    fields = {"name": "a", "displayName": "Alpha", "description": "b", "group": "Letters"}

    [written] = write(report(tool(fields=fields)))["tools"]

    assert (written["displayName"], written["group"]) == ("Alpha", "Letters")


def test_members_that_are_misspelt_are_warned_of() -> None:
    annotations = {"readonlyHint": True, "title": "Send", "openWorldHint": False, "ours": 1}
    fields = {"name": "send", "description": "Send", "annotations": annotations}
    members = ["name", "idempotentHint", "destructivehint", "descriptions", "retries"]
    warning = {"file": "", "line": 2, "why": "uses eval"}

    built = report(tool(fields=fields, members=members), tool(), warnings=[warning])

    place = "src/tools/send.ts:4: send"
    assert list(map(str, find_source_warnings(built, entry=ENTRY))) == [
        "src/index.ts:2: uses eval",
        f"{place} idempotentHint: has no effect here; write annotations: {{ idempotentHint: … }}",
        f"{place} destructivehint: has no effect; did you mean 'destructiveHint'?",
        f"{place} descriptions: has no effect; did you mean 'description'?",
        f"{place} annotations.readonlyHint: has no effect; did you mean 'readOnlyHint'?",
    ]


def test_the_settings_of_the_class_are_written_unless_the_package_has_them() -> None:
    settings = {"site": {"type": "url"}}
    built = report(tool(), plugin={**PLUGIN, "configSchema": settings})
    package = {**PACKAGE, "opentabs": {**PACKAGE["opentabs"], "configSchema": {}}}

    assert write(built)["configSchema"] == settings
    assert "configSchema" not in write(built, package)


def test_a_pre_script_is_named_with_its_hash() -> None:
    written = write(report(tool()), **{"pre-script.iife.js": "bb"})

    assert written["preScriptFile"] == "pre-script.iife.js"
    assert written["preScriptHash"] == "bb"


def test_a_name_for_users_is_made_of_the_tools_name() -> None:
    assert display_name("send_2_messages") == "Send 2 Messages"
