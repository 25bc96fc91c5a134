"""The generated code is valid JavaScript, whatever names a site uses."""

import json
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from subprocess import run
from typing import Any
from urllib.parse import quote

import pytest

from opentabs_py.core.recording.exchange import Exchange
from opentabs_py.core.shapes.shape import shape_of
from opentabs_py.generate.plugin import write_plugin
from opentabs_py.generate.prompt import prompt_for
from opentabs_py.generate.source import path_source
from opentabs_py.generate.zod import literal, schema
from tests.generate.recorded import ask, secret, site_of


@pytest.mark.parametrize(
    ("samples", "name", "expected"),
    [
        *(([1], name, "z.int()") for name in ("id", "userId", "page_size", "perPage", "year")),
        *(([1], name, "z.number()") for name in ("", "price", "size", "paid", "discount", "total")),
        ([1, 1.5], "id", "z.number()"),
        ([True], "", "z.boolean()"),
        (["a", None], "", "z.string().nullable()"),
        ([None], "", "z.unknown()"),
        ([], "", "z.unknown()"),
        (["2026-01-02", "2026-01-03"], "", 'z.string().meta({ format: "date" })'),
        (["open", "shut"] * 3, "state", 'z.enum(["open", "shut"])'),
        (["a", 1], "", "z.union([z.string(), z.number()])"),
        ([[]], "", "z.array(z.unknown())"),
        ([[1]], "counts", "z.array(z.number())"),
        ([{}], "", "z.looseObject({})"),
        ([{"u-0000001": 1}], "", "z.record(z.string(), z.number())"),
        (
            [{"a b": 1}, {"a b": 2, "c": "x"}],
            "",
            'z.looseObject({\n  "a b": z.number(),\n  c: z.string().optional(),\n})',
        ),
    ],
)
def test_a_schema_says_what_the_samples_look_like(
    samples: list[Any], name: str, expected: str
) -> None:
    assert schema(shape_of(*samples), name=name) == expected


def test_a_schema_stops_after_nine_nested_objects() -> None:
    value: Any = 1
    for _ in range(20):
        value = {"in": value}
    assert schema(shape_of(value)).count("looseObject") == 9


def test_a_value_is_written_so_that_javascript_reads_it_back() -> None:
    assert literal({"a": [1, None], "b-c": "\u2028</x>"}) == (
        '{ a: [1, null], "b-c": "\\u2028</x>" }'
    )


@pytest.mark.parametrize("language", ["ts", "js"])
@pytest.mark.parametrize("text", ["⟦a⟧", "BOOLEAN", "LINK_NAME", "AWAIT ", "HEADERS"])
def test_a_value_of_the_site_is_not_taken_for_a_mark_of_our_own(text: str, language: Any) -> None:
    site = site_of(ask("GET /api/items", {"n": 1}, sent={"x-app-name": text}))
    source = write_plugin(site, "x", language).files[f"src/api.{language}"]
    assert f'"x-app-name": {literal(text)},' in source
    assert json.loads(literal(text)) == text


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/api/a%20b%60c", "/api/a%20b%60c"),
        ("/api/users%3Asearch/me%40a.example", "/api/users%3Asearch/me%40a.example"),
        ("/api/users:search/me@a.example", "/api/users:search/me@a.example"),
        ("/api/100%", "/api/100%"),
        ("/api/a`${b}\\", "/api/a%60$%7Bb%7D%5C"),
    ],
)
def test_an_address_is_written_as_it_was_sent(path: str, written: str) -> None:
    [fixed] = site_of(ask(f"GET {path}", {"n": 1})).tools
    assert path_source(fixed) == f'"{written}"'
    [tool] = site_of(ask(f"GET {path}/items/7", {"n": 1})).tools
    assert path_source(tool) == f"`{written}/items/${{encodeURIComponent(itemId)}}`"


def test_a_form_is_found_by_its_path_as_it_was_sent() -> None:
    form = '<form action="/a%40b" method=post><input name=text></form>'
    sent = ask("POST /a%40b", "<h1>Sent</h1>", form={"text": "Tea"})
    site = site_of(ask("GET /c%40d", form), sent)
    [tool] = site.tools
    text = write_plugin(site, "x", "ts").files[f"src/tools/{tool.name}.ts"]
    assert 'const form = "/c%40d";' in text
    assert 'const action = "/a%40b";' in text


@pytest.mark.parametrize(
    "host", ["${stolen}.shop.example", "a`+b+`.shop.example", "a\\b.shop.example"]
)
def test_what_no_host_is_called_gets_no_tool(host: str) -> None:
    site = site_of(ask("GET /api/rooms", {"n": 1}), ask(f"GET https://{host}/api/items", {"n": 1}))
    assert [tool.name for tool in site.tools] == ["list_rooms"]


@pytest.mark.parametrize("host", ["api.shop.example", "my_api.shop.example", "api.shop.example:81"])
def test_a_tool_sends_its_request_to_the_host_that_was_asked(host: str) -> None:
    site = site_of(ask(f"GET https://{host}/api/items/7", {"n": 1}))
    [tool] = site.tools
    assert path_source(tool) == f"`https://{host}/api/items/${{encodeURIComponent(itemId)}}`"


def test_an_origin_is_text_in_the_code_whatever_it_contains() -> None:
    [tool] = site_of(ask("GET /api/items/7", {"n": 1})).tools
    odd = replace(tool, operation=replace(tool.operation, origin="https://${a}`\\"))
    path = "/api/items/${encodeURIComponent(itemId)}"
    assert path_source(odd) == f"`https://\\${{a}}\\`\\\\{path}`"


def test_an_origin_with_the_name_of_a_place_of_the_template_is_text_in_the_code() -> None:
    orders = "POST https://JSON_TYPE.shop.example/api/orders"
    asked = ask(orders, {"id": 1}, body={"count": 1}, sent={"content-type": "](run)["})
    code = write_plugin(site_of(asked), "shop", "ts").files["src/api.ts"]
    assert 'if (["https://JSON_TYPE.shop.example"].includes(' in code
    assert '"content-type": "](run)["' in code


@pytest.mark.parametrize("language", ["ts", "js"])
def test_half_a_character_is_written_as_an_escape(language: Any) -> None:
    half = "x\ud83d"
    query = f'query Rooms {{\n  rooms(a: "{half}") {{ id }}\n}}'
    body = {"operationName": "Rooms", "query": query, "variables": {half: half}}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": half}
    site = site_of(
        ask("POST /graphql", {"data": {"rooms": [{half: half}]}}, body=body),
        ask("POST /rpc", {"jsonrpc": "2.0", "id": 1, "result": {half: 1}}, body=rpc),
    )
    files = write_plugin(site, "x", language).files
    rooms = files[f"src/tools/list_rooms.{language}"]
    assert '  rooms(a: "x\\ud83d") { id }' in rooms
    assert '"x\\ud83d": z.string()' in rooms
    for text in [*files.values(), prompt_for(site, "x")]:
        text.encode()


def test_a_query_of_several_lines_stays_one() -> None:
    query = "query Rooms {\n  rooms(`${x}`) { id }\n}"
    body = {"operationName": "Rooms", "query": query, "variables": {}}
    site = site_of(ask("POST /graphql", {"data": {"rooms": []}}, body=body))
    files = write_plugin(site, "x", "ts").files
    assert (
        "query: `query Rooms {\n  rooms(\\`\\${x}\\`) { id }\n}`,"
        in (files["src/tools/list_rooms.ts"])
    )


@pytest.mark.parametrize("language", ["ts", "js"])
def test_javascript_has_no_types(language: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "rooms.list"}
    site = site_of(
        ask("POST /rpc", {"jsonrpc": "2.0", "id": 1, "result": [{"n": 1}]}, body=body),
        ask("GET /api/items?page=1", {"items": [{"n": 1}], "pages": 2}),
    )
    made = write_plugin(site, "x", language)
    text = "\n".join(text for file, text in made.files.items() if file.endswith(language))
    assert ("<any>" in text) is (language == "ts")
    assert ("override" in text) is (language == "ts")
    assert "⟦" not in text


def test_the_readme_says_what_is_left_to_do() -> None:
    site = site_of(
        ask("GET /api/items", [{"n": 1}], sent={"x-key": "token-3"}), scrubbed=[secret("token-3")]
    )
    assert (
        "the value of the header x-key comes from"
        in write_plugin(site, "x", "ts").files["README.md"]
    )


def test_the_readme_has_no_markdown_of_the_site() -> None:
    odd = "/api/a`b|c<i>\n# d"
    site = site_of(
        ask(f"GET {quote(odd)}", [{"n": 1}], sent={"[x](y)\n# z": "token-3"}),
        scrubbed=[secret("token-3")],
    )
    text = write_plugin(site, "x", "ts").files["README.md"]
    assert "| `GET /api/a'b\\|c<i> # d` |\n" in text
    assert "the header &#91;x&#93;&#40;y&#41; &#35; z comes from" in text


@pytest.mark.parametrize("name", ["token 😀", "token \x7f", 'token "\\'])
def test_the_configuration_is_valid_toml_whatever_a_field_is_called(name: str) -> None:
    form = f"<form method=post action=/x><input type=hidden name='{name}' value=a1></form>"
    pages = ask("GET /x", form), ask("POST /x", form, form={name: "a1"})
    text = write_plugin(site_of(*pages), "x", "ts").files["pyproject.toml"]
    assert tomllib.loads(text)["tool"]["opentabs"]["volatile"] == [name]


def test_a_prompt_shows_what_a_model_needs() -> None:
    text = prompt_for(site_of(ask("GET /api/items?q=tea", {"items": [{"n": 1}]})), "shop")
    assert "## shop_list_items\nrequest: GET /api/items\n" in text
    assert "argument q: string, required" in text
    assert 'called with: {"q": "tea"}\nreturned: {"items": [{"n": 1}]}' in text


def test_the_frameworks_of_a_site_are_named_once() -> None:
    page = '<script src="/_next/static/a.js"></script><input name="csrfmiddlewaretoken">'
    site = site_of(ask("GET /", page, headers={"x-powered-by": "Express"}), ask("GET /b", page))
    assert [*site.frameworks] == ["Next.js", "Django", "Express"]


def test_an_argument_may_have_the_name_of_a_variable_of_the_tool() -> None:
    table = "<table><tr><td>a<td>b<tr><td>c<td>d</table>"
    pages = site_of(ask("GET /list?page=2&title=x", table), ask("GET /list?page=3&title=y", table))
    text = write_plugin(pages, "x", "ts").files["src/tools/get_list.ts"]
    assert "async handle({ page: page_, title: title_ }, context)" in text
    assert "query: { page: page_, title: title_ }" in text


def test_a_tool_may_have_the_name_of_what_it_imports() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "call", "params": {"context": 1}}
    site = site_of(ask("POST /rpc", {"jsonrpc": "2.0", "id": 1, "result": {"n": 1}}, body=body))
    files = write_plugin(site, "x", "ts").files
    assert "export const call_ = defineTool({" in files["src/tools/call.ts"]
    assert "call<z.infer<typeof Result>>(" in files["src/tools/call.ts"]
    assert 'import { call_ } from "./tools/call.ts";' in files["src/index.ts"]


PAGED = [
    "results",
    "answer",
    "next",
    "request",
    "link",
    "maxPages",
    "hasMore",
    "class",
    "__proto__",
]


@pytest.mark.parametrize("name", PAGED)
def test_a_list_may_have_any_name_even_that_of_an_argument(name: str, tmp_path: Path) -> None:
    def page(number: int) -> Exchange:
        items = [{"id": number * 10 + each} for each in range(3)]
        return ask(f"GET /api/things?page={number}&{name}=3", {name: items, "total": 9})

    files = write_plugin(site_of(page(1), page(2), page(3)), "x", "js").files
    source = files["src/tools/list_things.js"]
    (tmp_path / "tool.mjs").write_text(source)
    node = Path(sys.executable).with_name("node")
    command: list[str | Path] = [node, "--check", tmp_path / "tool.mjs"]
    checked = run(command, capture_output=True, text=True, check=False)
    assert not checked.returncode, checked.stderr
    declared = re.findall(r"(?:const|let) (\w+) =|for \(let (\w+)", source)
    inner = [one or other for one, other in declared]
    assert len({*inner}) == len(inner)  # none shadows another
    assert not {*inner} & {"request", "link"}  # nor an import of the module


def test_the_rows_of_a_page_may_have_any_name() -> None:
    def page(number: int) -> Exchange:
        rows = "".join(f"<tr><td>{number}{each}<td>b" for each in range(3))
        return ask(f"GET /rows?page={number}", f"<table>{rows}</table><a rel=next href=/x>more</a>")

    files = write_plugin(site_of(page(1), page(2)), "x", "ts").files
    source = files["src/tools/list_rows.ts"]
    assert "const allRows = rows(page, " in source
    assert "allRows.push(...(rows(page, " in source
    assert "rows: allRows, hasMore: next !== null" in source
