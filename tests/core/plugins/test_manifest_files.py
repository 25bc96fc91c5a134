"""A plugin's manifest: what is read from it, and how its problems are reported."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opentabs_py.core.plugin_names import LONGEST_ID, RESERVED_IDS, mcp_name, plugin_id
from opentabs_py.core.plugins.manifest import ManifestTool, PluginManifest, find_name_clashes
from opentabs_py.core.plugins.manifest_files import LONGEST_ICON, find_sites, parse_plugin
from opentabs_py.core.protocol import PluginSpec
from opentabs_py.core.sites.match_patterns import LONGEST_PATTERN
from opentabs_py.errors import PluginError

Json = dict[str, Any]


def a_package(name: object = "opentabs-plugin-chat", **about: object) -> Json:
    return {
        "name": name,
        "version": "1.2.0",
        "opentabs": {
            "displayName": "Chat",
            "description": "Reads and writes messages.",
            "urlPatterns": ["*://*.chat.example/*"],
            **about,
        },
    }


def a_tool(name: object = "send_message", **more: object) -> Json:
    return {
        "name": name,
        "displayName": "Send message",
        "description": "Send a message to a channel.",
        "icon": "send",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "output_schema": {"type": "object"},
        **more,
    }


def parse(package: object = None, tools: object = None) -> PluginManifest:
    package = a_package() if package is None else package
    tools = {"sdkVersion": "0.1.0", "tools": [a_tool()]} if tools is None else tools
    return parse_plugin(json.dumps(package), json.dumps(tools))


def problems_of(package: object = None, tools: object = None) -> list[str]:
    """Return the lines that report a plugin's problems."""
    with pytest.raises(PluginError) as caught:
        parse(package, tools)
    head, *lines = str(caught.value).split("\n  ")
    count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
    assert head == f"The plugin is not valid; it has {count}:"
    return lines


def problem_of_tool(**more: object) -> str:
    [problem] = problems_of(tools={"tools": [a_tool(**more)]})
    return problem


# --- what is read ---


def test_a_manifest_holds_what_both_files_say() -> None:
    package = a_package(
        excludePatterns=["*://status.chat.example/*"],
        homepage="https://chat.example/",
        configSchema={"token": {"type": "string", "label": "Token"}},
    )
    annotations: Json = {"readOnlyHint": False}
    tool = a_tool(summary="Send", group="Messages", annotations=annotations)
    manifest = parse(package, {"tools": [tool], "preScriptFile": "pre-script.iife.js"})
    assert manifest == PluginManifest(
        name="chat",
        version="1.2.0",
        display_name="Chat",
        description="Reads and writes messages.",
        url_patterns=("*://*.chat.example/*",),
        exclude_patterns=("*://status.chat.example/*",),
        homepage="https://chat.example/",
        config_schema={"token": {"type": "string", "label": "Token"}},
        tools=(
            ManifestTool(
                name="send_message",
                display_name="Send message",
                description="Send a message to a channel.",
                summary="Send",
                icon="send",
                group="Messages",
                input_schema=tool["input_schema"],
                output_schema={"type": "object"},
                annotations=annotations,
            ),
        ),
        pre_script_file="pre-script.iife.js",
    )


def test_optional_members_may_be_left_out() -> None:
    tool = a_tool()
    del tool["icon"], tool["output_schema"]
    manifest = parse(tools={"tools": [tool]})
    assert manifest.tools[0].icon == "wrench"
    assert manifest.tools[0].output_schema is None
    assert parse(tools=[a_tool(output_schema=None, icon=None)]) == manifest
    assert (manifest.homepage, manifest.exclude_patterns, manifest.config_schema) == (None, (), {})
    assert manifest.pre_script_file is None


def test_the_array_of_old_builds_is_read_as_the_object_of_new_ones() -> None:
    assert parse(tools=[a_tool()]) == parse(tools={"tools": [a_tool()]})


def test_members_of_other_builds_are_left_alone() -> None:
    package = {**a_package(later=1), "scripts": {}, "dependencies": {}}
    tools = {"tools": [a_tool(iconSvg="<svg/>")], "preScriptHash": "00", "hash": 1}
    assert parse(package, tools) == parse(tools={"tools": [a_tool()]})


def test_an_icon_comes_from_either_file_and_is_never_a_reason_to_refuse_a_plugin() -> None:
    inner = {"tools": [a_tool()], "iconSvg": "<svg>2</svg>"}
    assert parse(a_package(iconSvg="<svg/>"), inner).icon_svg == "<svg/>"
    assert parse(a_package(), inner).icon_svg == "<svg>2</svg>"
    for strange in (7, "", "x" * (LONGEST_ICON + 1), {"svg": 1}):
        assert parse(a_package(iconSvg=strange)).icon_svg is None


def test_bytes_are_read_like_text_with_or_without_a_byte_order_mark() -> None:
    package, tools = json.dumps(a_package()).encode(), json.dumps([a_tool()]).encode("utf-8-sig")
    assert parse_plugin(package, tools) == parse(tools=[a_tool()])


def test_settings_may_come_from_the_tools_file() -> None:
    settings = {"site": {"type": "url", "required": True}}
    manifest = parse(a_package(urlPatterns=[]), {"tools": [], "configSchema": settings})
    assert manifest.config_schema == settings
    assert manifest.url_patterns == ()


def test_a_pre_script_is_named_relative_to_dist() -> None:
    manifest = parse(tools={"tools": [], "preScriptFile": "dist/pre/script.js"})
    assert manifest.pre_script_file == "pre/script.js"


def test_a_schema_in_an_older_dialect_is_judged_by_that_dialect() -> None:
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    older = {"$schema": "http://json-schema.org/draft-07/schema#", **pair}
    assert parse(tools=[a_tool(output_schema=older)]).tools[0].output_schema == older
    assert "is not valid JSON Schema at items" in problem_of_tool(output_schema=pair)


def test_a_schema_may_refer_to_parts_of_itself() -> None:
    schema = {
        "type": "object",
        "$defs": {
            "a/b": {"type": "string"},
            "node": {"$anchor": "node", "allOf": [{"type": "object"}]},
        },
        "properties": {
            "escaped": {"$ref": "#/$defs/a~1b"},
            "encoded": {"$ref": "#/%24defs/node"},
            "anchored": {"$ref": "#node"},
            "indexed": {"$ref": "#/$defs/node/allOf/0"},
            "whole": {"$ref": "#"},
            "$ref": {"type": "string"},
        },
    }
    assert parse(tools=[a_tool(input_schema=schema)]).tools[0].input_schema == schema


# --- the id ---


@pytest.mark.parametrize(
    ("package", "plugin"),
    [
        ("opentabs-plugin-chat", "chat"),
        ("opentabs-plugin-my-chat-2", "my-chat-2"),
        ("@opentabs-dev/opentabs-plugin-chat", "chat"),
        ("@acme/opentabs-plugin-chat", "acme-chat"),
        ("@acme/opentabs-plugin-tool", "acme-tool"),
    ],
)
def test_a_plugin_s_id_follows_from_its_package_s_name(package: str, plugin: str) -> None:
    assert plugin_id(package) == plugin
    assert parse(a_package(package)).name == plugin


@pytest.mark.parametrize(
    ("package", "why"),
    [
        ("chat", "not a valid plugin package name; write 'opentabs-plugin-<name>'"),
        ("opentabs-plugin-", "not a valid plugin package name"),
        ("@a/b/opentabs-plugin-chat", "not a valid plugin package name"),
        ("opentabs-plugin-Chat", "use lower-case letters"),
        ("opentabs-plugin-a--b", "single '-' between them"),
        ("opentabs-plugin-a_b", "use lower-case letters"),
        ("@Acme/opentabs-plugin-chat", "'Acme-chat'; use lower-case letters"),
        *((f"opentabs-plugin-{plugin}", "is reserved") for plugin in sorted(RESERVED_IDS)),
        ("@opentabs-dev/opentabs-plugin-mcp", "is reserved; choose another name"),
    ],
)
def test_a_package_name_that_names_no_plugin_is_refused_with_the_reason(
    package: str, why: str
) -> None:
    [problem] = problems_of(a_package(package))
    assert problem.startswith("package.json: name: ")
    assert why in problem


# --- before it is built ---

SITE: Json = {"site": {"type": "url", "required": True}}


@pytest.mark.parametrize(
    ("package", "given", "sites"),
    [
        (a_package(), {}, ("*://*.chat.example/*",)),
        (a_package(urlPatterns=[], configSchema=SITE), {}, ()),
        (
            a_package(configSchema=SITE),
            {"chat": {"site": "https://my.example:8443/"}},
            ("*://*.chat.example/*", "https://my.example/*"),
        ),
        (a_package(configSchema=SITE), {"chat": {"site": "nowhere"}}, ("*://*.chat.example/*",)),
        (a_package(configSchema=SITE), {"other": {"site": "https://my.example/"}}, None),
        (a_package(urlPatterns=["nowhere"]), {}, ()),
        (a_package(configSchema={"site": {"type": "colour"}}), {}, ()),
        ("{", {}, ()),
    ],
)
def test_the_sites_of_a_plugin_that_is_not_built_are_known_from_its_package(
    package: object, given: Json, sites: tuple[str, ...] | None
) -> None:
    text = package if isinstance(package, str) else json.dumps(package)
    assert find_sites(text, given) == (("*://*.chat.example/*",) if sites is None else sites)


# --- problems ---


def test_every_problem_of_both_files_is_reported_together() -> None:
    package = {"name": "chat", "opentabs": {"displayName": "", "urlPatterns": ["nowhere", 7]}}
    tools = {
        "tools": [
            a_tool("Send"),
            a_tool("read", input_schema=[]),
            a_tool("read", description=None),
            "other",
        ],
        "preScriptFile": "../secret.js",
    }
    paths = [problem.split(": ")[:2] for problem in problems_of(package, tools)]
    assert paths == [
        ["package.json", "name"],
        ["package.json", "version"],
        ["package.json", "opentabs.displayName"],
        ["package.json", "opentabs.description"],
        ["package.json", "opentabs.urlPatterns[0]"],
        ["package.json", "opentabs.urlPatterns[1]"],
        ["dist/tools.json", "tools[0].name"],
        ["dist/tools.json", "tools[1].input_schema"],
        ["dist/tools.json", "tools[2].description"],
        ["dist/tools.json", "tools[3]"],
        ["dist/tools.json", "preScriptFile"],
        ["dist/tools.json", "tools[2].name"],
    ]


@pytest.mark.parametrize(
    ("package", "problem"),
    [
        (
            a_package(displayName=""),
            (
                "package.json: opentabs.displayName: is empty; "
                'write the name that users see, such as "Chat"'
            ),
        ),
        (
            {"name": "opentabs-plugin-chat", "version": "1.0.0"},
            (
                "package.json: opentabs: is missing; "
                "write an object with displayName, description and urlPatterns"
            ),
        ),
        (
            a_package(urlPatterns="*://chat.example/*"),
            (
                'package.json: opentabs.urlPatterns: is "*://chat.example/*", not a list; '
                'write the pages it is for, such as ["*://*.example.com/*"]'
            ),
        ),
        (
            a_package(urlPatterns=["https://chat.example"]),
            (
                "package.json: opentabs.urlPatterns[0]: 'https://chat.example' has no path; "
                "write 'https://chat.example/*' to match the whole site"
            ),
        ),
        (
            a_package(configSchema={"site": "url"}),
            (
                'package.json: opentabs.configSchema.site: is "url", not an object; '
                "correct it or leave it out"
            ),
        ),
        ([], None),
        ({**a_package(), "version": 1}, None),
        (a_package(displayName="\ud800"), None),
    ],
)
def test_a_problem_says_where_why_and_what_to_write(package: object, problem: str | None) -> None:
    [told] = problems_of(package)
    if problem is not None:
        assert told == problem
    assert told.startswith("package.json: ")
    assert "; " in told


def test_a_problem_in_an_old_build_s_array_is_found_by_its_path_in_the_file() -> None:
    [problem] = problems_of(tools=[a_tool(), a_tool("Send")])
    assert problem.startswith("dist/tools.json: [1].name: 'Send' is not a valid tool name; ")


def test_a_tools_file_of_another_shape_is_refused() -> None:
    assert problems_of(tools="none") == [
        'dist/tools.json: is "none", not an object; build the plugin again'
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        ("", "is not JSON: Expecting value: line 1 column 1"),
        (b"\xff\xfe{", "is not JSON: "),
        ("[NaN]", "is not JSON: NaN is not a JSON number"),
        ("[" * 100_000, "is not JSON: nested too deeply"),
        ("[" + "9" * 5000 + "]", "is not JSON: "),
    ],
)
def test_a_file_that_is_not_json_is_reported(text: str | bytes, why: str) -> None:
    with pytest.raises(PluginError) as caught:
        parse_plugin(json.dumps(a_package()), text)
    [_, problem] = str(caught.value).split("\n  ")
    assert problem.startswith(f"dist/tools.json: {why}")
    assert problem.endswith("; build the plugin again")


@pytest.mark.parametrize(
    "settings",
    [
        None,
        {"site": {"type": "url"}},
        {"site": {"type": "url", "required": False}},
        {"url": {"type": "string", "required": True}},
    ],
)
def test_a_plugin_without_pages_needs_a_required_url_setting(settings: object) -> None:
    [problem] = problems_of(a_package(urlPatterns=[], configSchema=settings))
    assert problem.startswith("package.json: opentabs.urlPatterns: is empty; write the pages")


def test_a_required_url_setting_stands_for_the_pages() -> None:
    settings = {"site": {"type": "url", "required": True}}
    assert parse(a_package(urlPatterns=[], configSchema=settings)).url_patterns == ()


@pytest.mark.parametrize(
    "path",
    ["../evil.js", "/etc/passwd", "a/../b.js", "..", "", "dist/", "a\\b.js", ".hidden.js", "a//b"],
)
def test_a_pre_script_outside_dist_is_refused(path: str) -> None:
    [problem] = problems_of(tools={"tools": [], "preScriptFile": path})
    assert "is not a file in the plugin's dist directory" in problem


@pytest.mark.parametrize("of_tools", [False, True])
def test_every_problem_of_the_settings_is_reported_with_its_path(of_tools: bool) -> None:
    settings: Json = {
        "a": {"type": "colour"},
        "b": {"type": "select", "options": ["x", 2]},
        "c": "url",
        "d": {"type": "number", "default": "5", "unknown": 1},
    }
    tools = {"tools": [], "configSchema": settings}
    told = problems_of(tools=tools) if of_tools else problems_of(a_package(configSchema=settings))
    path = "dist/tools.json: configSchema" if of_tools else "package.json: opentabs.configSchema"
    assert sorted(problem.removeprefix(path).split(": ")[0] for problem in told) == [
        ".a.type", ".b.options[1]", ".c", ".d.default",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["a", "a1", "send_message", "x_2_y"])
def test_a_good_tool_name_is_accepted(name: str) -> None:
    assert parse(tools=[a_tool(name)]).tools[0].name == name


@pytest.mark.parametrize("name", ["", "Send", "send-it", "_a", "a_", "a__b", "1a", "ä", "a\n"])
def test_a_bad_tool_name_is_refused_with_an_example_of_a_good_one(name: str) -> None:
    assert "for example 'send_message'" in problem_of_tool(name=name)


def test_two_tools_of_one_name_are_refused_at_the_second() -> None:
    [problem] = problems_of(tools={"tools": [a_tool(), a_tool("other"), a_tool()]})
    assert problem == (
        "dist/tools.json: tools[2].name: 'send_message' is also the name of tools[0]; "
        "give each tool its own name"
    )


def test_a_tool_named_as_clients_and_permissions_call_another_is_refused() -> None:
    clients = f"{parse(tools=[a_tool('send')]).name}_send"
    [problem] = problems_of(tools={"tools": [a_tool(clients), a_tool("send")]})
    assert problem == (
        f"dist/tools.json: tools[0].name: MCP clients and permissions call tools[1] {clients!r}; "
        "give this tool another name"
    )
    assert parse(tools=[a_tool(clients)]).tools[0].name == clients


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"properties": {}}, "has the root type null"),
        ({"type": "array"}, 'has the root type "array"'),
        ({"type": ["object"]}, 'write "type": "object"'),
        ({"type": "object", "properties": {"tabId": {}}}, "has a property 'tabId'"),
        (
            {"type": "object", "properties": {"a": {"type": "text"}}},
            'is not valid JSON Schema at properties.a.type: "text" is not valid',
        ),
        ({"type": "object", "required": "a"}, "is not valid JSON Schema at required"),
        ({"type": "object", "$schema": 7}, "is not valid JSON Schema at $schema"),
        ({"type": "object", "$schema": "urn:unknown", "required": 1}, "is not valid JSON Schema"),
        ({"type": "object", "$ref": "https://example.com/s"}, "outside itself; copy"),
        ({"type": "object", "allOf": [{"$dynamicRef": "other"}]}, "outside itself; copy"),
        ({"type": "object", "$ref": "#/$defs/a"}, "which it does not contain"),
        ({"type": "object", "allOf": [{"$ref": "#/allOf/1"}]}, "which it does not contain"),
        ({"type": "object", "allOf": [{"$ref": "#/allOf/x"}]}, "which it does not contain"),
        ({"type": "object", "$ref": "#nowhere"}, "which it does not contain; add it"),
    ],
)
def test_an_input_schema_that_could_not_serve_is_refused(schema: Json, why: str) -> None:
    problem = problem_of_tool(input_schema=schema)
    assert problem.startswith("dist/tools.json: tools[0].input_schema: ")
    assert why in problem


def test_an_output_schema_that_could_not_serve_is_refused() -> None:
    assert "tools[0].output_schema: is not valid JSON Schema at type" in problem_of_tool(
        output_schema={"type": "text"}
    )


def test_an_output_schema_may_describe_any_type() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert parse(tools=[a_tool(output_schema=schema)]).tools[0].output_schema == schema


@pytest.mark.parametrize("depth", [260, 300])
def test_a_schema_nested_too_deeply_for_the_validator_is_a_problem_not_a_crash(depth: int) -> None:
    schema: Json = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    assert "tools[0].input_schema: is nested too deeply" in problem_of_tool(input_schema=schema)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_MEMBERS = st.sampled_from(
    [
        "name",
        "version",
        "opentabs",
        "tools",
        "displayName",
        "urlPatterns",
        "configSchema",
        "input_schema",
        "output_schema",
        "preScriptFile",
        "type",
        "properties",
        "$ref",
        "$schema",
    ]
)


@given(
    files=st.tuples(
        *[_JSON | st.dictionaries(_MEMBERS, _JSON | st.dictionaries(_MEMBERS, _JSON))] * 2
    )
)
def test_any_content_results_in_a_manifest_or_a_plugin_error(
    files: tuple[object, object],
) -> None:
    with pytest.raises(PluginError):
        parse(*(json.dumps(file) for file in files))


@given(member=_MEMBERS, value=_JSON, change=st.sampled_from(["package", "about", "tools", "tool"]))
def test_any_single_wrong_member_results_in_a_manifest_or_a_plugin_error(
    member: str, value: object, change: str
) -> None:
    changed: dict[str, Callable[[], tuple[object, object]]] = {
        "package": lambda: ({**a_package(), member: value}, [a_tool()]),
        "about": lambda: (a_package(**{member: value}), [a_tool()]),
        "tools": lambda: (a_package(), {"tools": [a_tool()], member: value}),
        "tool": lambda: (a_package(), [{**a_tool(), member: value}]),
    }
    with suppress(PluginError):
        assert parse(*changed[change]()).name


# --- names and tabs ---


def test_an_mcp_name_joins_plugin_and_tool() -> None:
    assert mcp_name("my-chat", "send_message") == "my_chat_send_message"


def test_tools_that_would_share_a_name_are_found() -> None:
    manifests = [
        parse(a_package("opentabs-plugin-my-chat"), [a_tool("send"), a_tool("read")]),
        parse(a_package("opentabs-plugin-my"), [a_tool("chat_send"), a_tool("read")]),
    ]
    assert find_name_clashes(manifests) == {
        "my_chat_send": [("my-chat", "send"), ("my", "chat_send")]
    }


def test_tools_with_names_of_their_own_do_not_clash() -> None:
    manifests = [parse(), parse(a_package("@acme/opentabs-plugin-chat"))]
    assert find_name_clashes(manifests) == {}


# --- bounds ---


def test_a_plugin_of_the_longest_id_version_and_patterns_fits_the_wire() -> None:
    pattern = "https://chat.example/" + "x" * (LONGEST_PATTERN - 21)
    package = a_package("opentabs-plugin-" + "c" * LONGEST_ID, urlPatterns=[pattern])
    manifest = parse({**package, "version": "1" * 256}, {"tools": []})
    spec = PluginSpec(
        name=manifest.name,
        version=manifest.version,
        matches=list(manifest.url_patterns),
        exclude_matches=[],
        file=f"pre-scripts/{manifest.name}-{'0' * 16}.js",
        config={},
    )
    assert len(spec.name) == LONGEST_ID


def test_an_id_that_is_too_long_is_reported_with_the_limit() -> None:
    [problem] = problems_of(a_package("opentabs-plugin-" + "c" * (LONGEST_ID + 1)))
    assert "a plugin id of 129 characters" in problem
    assert "128 at most" in problem


def test_a_tool_name_is_too_long_when_it_is_with_the_id_before_it() -> None:
    parse(tools={"tools": [a_tool("t" * 123)]})
    [problem] = problems_of(tools={"tools": [a_tool("t" * 124)]})
    assert problem.startswith("dist/tools.json: tools[0].name: ")
    assert "a name of 129 characters" in problem
    assert "128 are allowed" in problem


def test_a_version_that_is_too_long_is_reported_with_the_limit() -> None:
    [problem] = problems_of({**a_package(), "version": "1" * 257})
    assert "version: has 257 characters, but at most 256 are allowed; write" in problem


@pytest.mark.parametrize(
    "homepage",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//chat.example",
        "https://",
        "http://[",
        "",
        "https://a b",
    ],
)
def test_a_homepage_that_is_not_of_the_web_is_refused(homepage: str) -> None:
    [problem] = problems_of(a_package(homepage=homepage))
    assert "opentabs.homepage: is " in problem
    assert "not an http or https URL; write one" in problem
