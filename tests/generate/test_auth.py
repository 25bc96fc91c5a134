"""A token that a request needs is found where the page has it."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from opentabs_py.core.recording.exchange import Exchange
from opentabs_py.generate.api_source import api_source, ready_source
from opentabs_py.generate.source import tool_source
from tests.generate.recorded import ask, secret, site_of

VALUE = "token-17"


def asked(**more: Any) -> Exchange:
    return ask("GET /api/items", [{"n": 1}], sent={"X-Auth": VALUE, **more})


def storage(name: str, value: str) -> dict[str, Any]:
    item = {"name": name, "value": value}
    return {"storage_at_end": {"origins": [{"localStorage": [item]}]}}


COOKIE = {"name": "xsrf", "value": VALUE, "httpOnly": False}


@pytest.mark.parametrize(
    ("parts", "more", "where", "code"),
    [
        ([], {"storage_state": {"cookies": [COOKIE]}}, "cookie", 'getCookie("xsrf")'),
        ([], storage("token", VALUE), "localStorage", 'getLocalStorage("token")'),
        (
            [],
            storage("state", json.dumps({"user": {"key": VALUE}})),
            "localStorage",
            'memberOf(JSON.parse(getLocalStorage("state") ?? "null"), ["user", "key"])',
        ),
        (
            [ask("GET /", f'<meta name="csrf" content="{VALUE}">')],
            {},
            "meta",
            'getMetaContent("csrf")',
        ),
        (
            [ask("GET /", f'<input type="hidden" name="csrf" value="{VALUE}">')],
            {},
            "field",
            'document.querySelector<HTMLInputElement>("input[name=\\"csrf\\"]")?.value',
        ),
        (
            [ask("GET /", f'<script>app = {{"csrfToken": "{VALUE}"}}</script>')],
            {},
            "script",
            'inScript("csrfToken")',
        ),
        (
            [ask("GET /api/session", {"a": {"token": VALUE}})],
            {},
            "response",
            'memberOf(await fetchJSON(urlOf("/api/session")), ["a", "token"])',
        ),
    ],
)
def test_the_value_of_a_header_is_read_where_the_page_has_it(
    parts: list[Exchange], more: dict[str, Any], where: str, code: str
) -> None:
    site = site_of(*parts, asked(), scrubbed=[secret(VALUE)], **more)

    [header] = site.auth.headers
    assert (header.name, header.where) == ("x-auth", where)
    assert code in api_source(site.tools, site.auth, "ts")
    assert "hasSession" in ready_source(site.auth)


def test_a_value_is_found_after_a_malformed_declaration() -> None:
    page = f'<![foo[x]]><meta name="xsrf" content="{VALUE}">'
    site = site_of(ask("GET /", page), asked(), scrubbed=[secret(VALUE)])
    assert [(each.where, each.key) for each in site.auth.headers] == [("meta", "xsrf")]


def test_a_scheme_stays_before_the_token() -> None:
    sent = {"authorization": f"Bearer {VALUE}"}
    site = site_of(ask("GET /api/items", [], sent=sent), **storage("token", VALUE))
    assert '"Bearer " + needed(getLocalStorage("token")' in api_source(site.tools, site.auth, "js")


def test_a_header_that_is_the_same_for_everyone_is_sent_as_it_is() -> None:
    site = site_of(ask("GET /api/items", [], sent={"X-Client": "web", "Accept": "*/*"}))
    assert [(each.name, each.value) for each in site.auth.headers] == [("x-client", "web")]
    assert '"x-client": "web",' in api_source(site.tools, site.auth, "ts")


@pytest.mark.parametrize(
    ("name", "values"),
    [("x-workspace", ("one", "two")), ("x-http-method-override", ("DELETE",))],
)
def test_a_header_of_one_request_is_not_sent_with_all(name: str, values: Sequence[str]) -> None:
    asked = [ask("POST /api/items", {"n": 1}, body={"t": v}, sent={name: v}) for v in values]
    site = site_of(ask("GET /api/items", [{"n": 1}]), *asked)
    assert name not in api_source(site.tools, site.auth, "ts")
    assert [*site.auth.missing] == [f"the header {name}"]


def test_a_key_against_repetition_is_new_in_each_request() -> None:
    site = site_of(ask("POST /api/items", {"n": 1}, body={}, sent={"Idempotency-Key": "k-1"}))
    source = api_source(site.tools, site.auth, "ts")
    assert '"idempotency-key": `${Date.now()}-${Math.random()}`,' in source
    assert not site.auth.missing
    assert "hasSession" not in source


def test_a_secret_that_no_page_has_is_not_written_into_the_plugin() -> None:
    site = site_of(asked(), scrubbed=[secret(VALUE)])
    assert [*site.auth.missing] == ["the header x-auth"]
    assert VALUE not in api_source(site.tools, site.auth, "ts")


@pytest.mark.parametrize("place", ["form", "body"])
def test_a_token_in_a_body_is_read_from_the_page(place: str) -> None:
    page = f'<meta name="csrf-token" content="{VALUE}">'
    sent: list[dict[str, Any]] = [{"authenticity_token": VALUE, "text": each} for each in "ab"]
    asked = [ask("POST /notes", {"id": 1}, **cast(Any, {place: each})) for each in sent]
    site = site_of(ask("GET /", page), *asked, scrubbed=[secret(VALUE)])

    (tool,) = site.tools
    sources = tool_source(tool, "ts"), api_source(site.tools, site.auth, "ts")
    assert "authenticity_token: await tokens.authenticityToken()" in sources[0]
    assert 'import { request, tokens } from "../api.ts";' in sources[0]
    assert 'authenticityToken: async () => needed(getMetaContent("csrf-token")' in sources[1]
    assert VALUE not in "".join(sources)
    assert not site.auth.missing


def test_a_token_in_a_query_whose_source_is_unknown_is_to_be_set_in_one_place() -> None:
    asked = [ask(f"GET /api/{each}?token={VALUE}", [{"n": 1}]) for each in ("items", "users")]
    site = site_of(*asked, scrubbed=[secret(VALUE)])

    assert [*site.auth.missing] == ["token"]
    assert f'  token: async () => "{VALUE}",' in api_source(site.tools, site.auth, "ts")
    for tool in site.tools:
        assert "query: { token: await tokens.token() }" in tool_source(tool, "ts")


def test_a_cookie_that_scripts_cannot_read_is_not_read() -> None:
    hidden: dict[str, Any] = {"storage_state": {"cookies": [{**COOKIE, "httpOnly": True}]}}
    answer = ask("GET /", "<p>", headers={"set-cookie": f"other={VALUE}; HttpOnly"})
    site = site_of(answer, asked(Cookie=f"xsrf={VALUE}"), scrubbed=[secret(VALUE)], **hidden)
    assert [each.where for each in site.auth.headers] == ["unknown"]
    assert site.auth.cookies == ["xsrf"]


def test_a_cookie_that_an_answer_sets_is_read() -> None:
    answer = ask(
        "GET /", "<p>", headers={"set-cookie": f"xsrf={VALUE.replace('-', '%2D')}; Path=/"}
    )
    site = site_of(answer, asked(), scrubbed=[secret(VALUE)])
    assert [each.key for each in site.auth.headers] == ["xsrf"]


@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        (
            [ask("GET /api/user", {"n": 1}), ask("GET /api/me", {"n": 1})],
            'request("GET", "/api/me")',
        ),
        ([ask("GET /", '<a href="/logout">Out</a>')], 'a[href*="out" i]'),
        ([ask("GET /", "<p>")], "document.body !== null"),
    ],
)
def test_a_plugin_is_ready_when_the_user_is_signed_in(
    exchanges: list[Exchange], expected: str
) -> None:
    assert expected in ready_source(site_of(*exchanges).auth)


def test_what_hands_out_a_token_is_not_a_tool() -> None:
    session = ask("GET /api/session", {"token": VALUE})
    site = site_of(session, asked(), scrubbed=[secret(VALUE)])
    assert [tool.name for tool in site.tools] == ["list_items"]


def test_cookies_are_sent_only_to_other_hosts_that_allow_them() -> None:
    allows = {"access-control-allow-credentials": "true"}
    site = site_of(
        ask("GET https://api.shop.example/items", [{"n": 1}]),
        ask("GET https://cart.shop.example/lines", [{"n": 1}], headers=allows),
        ask("GET /reviews", [{"n": 1}]),
    )
    source = api_source(site.tools, site.auth, "js")
    assert '  if (["https://api.shop.example"].includes(new URL(url, location.href).origin)) {' in (
        source
    )
    assert source.count('init.credentials = "omit"') == 1


def test_a_site_without_other_hosts_is_sent_cookies() -> None:
    site = site_of(ask("GET /reviews", [{"n": 1}]))
    assert "credentials" not in api_source(site.tools, site.auth, "js")


@pytest.mark.parametrize("mime", ["application/json", "application/vnd.api+json", "text/plain"])
def test_json_is_asked_for_and_sent_as_the_pages_do_it(mime: str) -> None:
    sent = {"accept": mime, "content-type": mime}
    site = site_of(
        ask("POST /api/items", {"id": 1}, body={"n": 1}, sent=sent),
        ask("POST /api/login", {"id": 1}, form={"n": 1}, sent={"accept": "*/*"}),
    )
    source = api_source(site.tools, site.auth, "js")
    assert f'init.headers = {{ ...headers, "content-type": "{mime}" }};' in source
    assert f'    "accept": "{mime}",' in source


def test_what_a_browser_accepts_by_itself_is_not_repeated() -> None:
    site = site_of(ask("GET /api/items", [{"n": 1}], sent={"accept": "*/*"}))
    assert "accept" not in api_source(site.tools, site.auth, "js")
