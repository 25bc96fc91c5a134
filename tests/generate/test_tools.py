"""A tool's name and arguments follow from what its requests have in common and what differs."""

import json
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from opentabs_py.core.recording.exchange import Recording, Request
from opentabs_py.core.recording.matching import Comparable, comparable
from opentabs_py.core.shapes.shape import shape_of
from opentabs_py.errors import RecordingError
from opentabs_py.generate import calls
from opentabs_py.generate.calls import calls_of
from opentabs_py.generate.names import export_name
from opentabs_py.generate.plugin import write_plugin
from opentabs_py.generate.site import read_site
from opentabs_py.generate.source import tool_source, variable
from opentabs_py.generate.zod import schema
from tests.generate.recorded import FORM, HOME, OK, ask, secret, site_of, tools_of

ITEM = {"id": 7, "title": "Tea"}


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("GET /api/items", "list_items"),
        ("GET /api/items/7", "get_item"),
        ("GET /api/v2/categories/12", "get_category"),
        ("GET /api/items/7/reviews", "list_reviews"),
        ("GET /api/weather", "get_weather"),
        ("GET /api/items/search?q=tea", "search_items"),
        ("POST /api/items", "create_item"),
        ("PUT /api/items/7", "replace_item"),
        ("PATCH /api/items/7", "update_item"),
        ("DELETE /api/items/7", "delete_item"),
        ("POST /api/items/7/archive", "archive_item"),
        ("POST /api/itemBatches", "create_item_batch"),
    ],
)
def test_a_tool_is_named_after_what_its_request_does(asked: str, name: str) -> None:
    assert [*tools_of(ask(asked, ITEM))] == [name]


def test_tools_of_the_same_name_also_show_their_owner() -> None:
    names = [*tools_of(ask("GET /api/items/7/notes", []), ask("GET /api/users/8/notes", []))]
    assert names == ["list_notes", "list_user_notes"]


def test_an_id_that_another_answer_has_is_an_argument() -> None:
    tools = tools_of(
        ask("GET /api/rooms", {"rooms": [{"slug": "kitchen"}, {"slug": "hall"}]}),
        ask("GET /api/rooms/kitchen/lamps", [{"on": True}]),
        ask("GET /api/rooms/hall/lamps", [{"on": False}]),
    )

    [room] = tools["list_lamps"].inputs.arguments
    assert (room.name, room.is_required) == ("roomSlug", True)
    assert room.source is not None
    assert room.source.path == "rooms[].slug"
    assert [call.arguments for call in calls_of(tools["list_lamps"])] == [
        {"roomSlug": "kitchen"},
        {"roomSlug": "hall"},
    ]


def test_a_value_does_not_come_from_the_response_to_the_request_that_sent_it() -> None:
    tools = tools_of(
        ask("GET /api/users/7/posts", {"n": 1}),
        ask("GET /api/users/8/posts?tag=abc", {"tag": "abc"}),
    )
    [tag] = [each for each in tools["list_posts"].inputs.arguments if each.name == "tag"]
    assert tag.source is None


def test_what_differs_is_an_argument_and_what_does_not_a_default() -> None:
    tools = tools_of(
        ask("GET /api/items?color=red&limit=20&v=3", [ITEM]),
        ask("GET /api/items?color=blue&limit=20&v=3&only=new", [ITEM]),
    )

    inputs = tools["list_items"].inputs
    assert [(each.name, each.is_required, each.default) for each in inputs.arguments] == [
        ("color", True, ()),
        ("limit", False, (20,)),
        ("only", False, ()),
    ]
    assert inputs.query == {"v": 3}


def test_what_a_request_writes_is_required_even_if_it_was_written_once() -> None:
    body = {"title": "Tea", "pinned": False, "tags": [], "note": None}
    [tool] = tools_of(ask("POST /api/items", ITEM, body=body)).values()

    required = [each.name for each in tool.inputs.arguments if each.is_required]
    assert required == ["title"]
    assert [call.arguments for call in calls_of(tool)] == [{"title": "Tea"}]


@pytest.mark.parametrize("count", [1, 2])
def test_the_time_of_a_request_is_sent_by_the_tool_and_is_no_argument(count: int) -> None:
    now, old = 1_700_000_000, 1_600_000_000
    asked = [
        ask(
            f"POST /api/search?_={1000 * now + each}&t=x{each}&ts={old + each}",
            {"found": [each]},
            body={"timestamp": now + each, "nonce": f"{each}", "text": f"tea {each}"},
        )
        for each in range(count)
    ]
    timed = [replace(each, started=now + 3.0) for each in asked]

    [tool] = read_site(Recording(HOME, timed)).tools

    names = [each.name for each in tool.inputs.arguments]
    assert names == ["t", "ts", "nonce", "text"]
    source = tool_source(tool, "ts")
    assert "_: Date.now()" in source
    assert "timestamp: Math.floor(Date.now() / 1000)" in source


def test_alike_objects_by_keys_that_are_no_ids_are_a_map() -> None:
    def described(*names: str, **more: object) -> str:
        return schema(shape_of({**{each: {"age": 1, "on": True} for each in names}, **more}))

    of_map = described("amara", "ben", "chiara", "dmitri")
    assert of_map.startswith("z.record(z.string(), z.looseObject({")
    assert described("amara", "ben", "chiara", "item-0101") == described("1", "2", "3", "4")
    for no_map in (
        described("amara", "ben", "chiara"),
        described("amara", "ben", "chiara", "dmitri", total=4),
        described("amara", "ben", "chiara", other={"age": 1}),
        described(a={}, b={}, c={}, d={}),
    ):
        assert no_map.startswith("z.looseObject({")


def test_a_secret_is_not_a_default() -> None:
    [tool] = tools_of(
        ask("GET /api/items?share=token-4", [ITEM]), scrubbed=[secret("token-4")]
    ).values()

    [share] = tool.inputs.arguments
    assert (share.is_required, share.default) == (True, ())


def test_a_name_that_is_not_one_in_javascript_is_given_another() -> None:
    [tool] = tools_of(ask("GET /api/items?sort-by=age&class=b", [ITEM])).values()
    assert [each.name for each in tool.inputs.arguments] == ["sortBy", "class_"]


@pytest.mark.parametrize(
    "exchange",
    [
        ask("POST /collect", {"ok": True}, body={"event": "seen"}),
        ask("POST /api/login", ITEM, body={"user": "ann"}),
        ask("POST /api/enter", ITEM, body={"password": "x"}),
        ask("GET /locales/en.json", ITEM),
        ask("GET /api/items", OK),
        ask("GET /api/items", ITEM, status=500),
        ask("GET https://ads.example/api/items", [ITEM]),
        ask("POST /graphql", ITEM, body=[{"query": "{ a }", "operationName": "A"}]),
        ask("OPTIONS /api/items", ITEM),
    ],
)
def test_what_is_useless_as_a_tool_is_left_out(exchange: object) -> None:
    assert tools_of(exchange) == {}  # type: ignore[arg-type]


def test_the_same_operation_is_a_tool_if_it_is_chosen() -> None:
    login = ask("POST /api/login", ITEM, body={"user": "ann"})
    assert [*tools_of(login, chosen=("POST /api/login",))] == ["create_login"]


def test_a_request_that_was_not_recorded_cannot_be_chosen() -> None:
    with pytest.raises(RecordingError, match="no 'GET /api/nothing'") as caught:
        site_of(ask("GET /api/items", [ITEM]), chosen=("GET /api/nothing",))
    assert "GET /api/items" in str(caught.value)


@pytest.mark.parametrize(
    ("mime", "body", "length"),
    [
        ("text/plain", b"hello", "5"),
        ("application/json", b'{"id": 1234567890123456789}', "27"),  # JavaScript rounds it
        ("multipart/form-data; boundary=x", b"--x\r\n\r\nTea\r\n--x--\r\n", "18"),
        ("application/octet-stream", b"\xff\x00", "2"),
        ("application/octet-stream", b"", "2"),  # browsers do not report files
        ("multipart/form-data; boundary=x", b"", "0"),
    ],
)
def test_a_request_whose_body_a_tool_cannot_send_is_left_out(
    mime: str, body: bytes, length: str
) -> None:
    sent = {"content-type": mime, "content-length": length}
    asked = ask("POST /api/items", ITEM, sent=sent)
    upload = replace(asked, request=replace(asked.request, body=body))
    items = ask("GET /api/items", [ITEM])
    assert [*tools_of(items, upload)] == ["list_items"]
    with pytest.raises(RecordingError, match="neither JSON nor"):
        tools_of(items, upload, chosen=("POST /api/items",))


@pytest.mark.parametrize("more", [{}, {"variables": None}])
def test_a_graphql_query_without_variables_is_a_tool(more: dict[str, None]) -> None:
    body = {"query": "query Rooms { rooms { id } }", **more}
    assert [*tools_of(ask("POST /graphql", {"data": {"rooms": []}}, body=body))] == ["list_rooms"]


def test_a_request_that_fails_is_a_call_with_the_code_of_its_status() -> None:
    [tool] = tools_of(
        ask("GET /api/items/7", ITEM), ask("GET /api/items/8", {"error": "no"}, status=404)
    ).values()

    assert [(call.arguments, call.code) for call in calls_of(tool)] == [
        ({"itemId": 7}, ""),
        ({"itemId": 8}, "NOT_FOUND"),
    ]


def test_a_failed_request_that_the_tool_cannot_send_is_not_a_call() -> None:
    [tool] = tools_of(
        ask("GET /api/items?size=5", [ITEM]),
        ask("GET /api/items?size=9", [ITEM, ITEM]),
        ask("GET /api/items?size=all", {"error": "no"}, status=400),
    ).values()

    assert [call.arguments for call in calls_of(tool)] == [{"size": 5}, {"size": 9}]


def test_two_arguments_never_have_one_variable() -> None:
    answer = {"ok": True}
    [tool] = tools_of(
        ask("GET /api/x?page=a&page_=b", answer), ask("GET /api/x?page=c&page_=d", answer)
    ).values()
    assert [(each.name, variable(each)) for each in tool.inputs.arguments] == [
        ("page", "page_"),
        ("page__2", "page__2"),
    ]


def test_pages_that_are_not_all_lists_are_not_joined() -> None:
    pages = [{"items": [ITEM, ITEM], "total": 4}, {"items": "none", "total": 4}]
    asked = [ask(f"GET /api/items?page={n}", each) for n, each in enumerate(pages, 1)]
    [tool] = tools_of(*asked).values()
    assert tool.pagination is None
    assert [call.value for call in calls_of(tool)] == pages


def test_a_request_with_several_answers_is_not_expected_to_return_one_of_them() -> None:
    [tool] = tools_of(ask("GET /api/count", {"n": 1}), ask("GET /api/count", {"n": 2})).values()
    [call] = calls_of(tool)
    assert not call.is_stable


def test_a_body_that_is_a_list_is_one_argument() -> None:
    [tool] = tools_of(ask("POST /api/items", ITEM, body=[1, 2])).values()
    assert [call.arguments for call in calls_of(tool)] == [{"body": [1, 2]}]


@pytest.mark.parametrize("mime", [FORM, "text/plain;charset=UTF-8"])  # the latter of a string
def test_a_form_is_sent_as_one(mime: str) -> None:
    exchange = ask("POST /api/items", ITEM, form={"title": "Tea", "n": "3", "tag": ["a", "b"]})
    request = replace(exchange.request, headers=[("content-type", mime)])
    [tool] = tools_of(replace(exchange, request=request)).values()

    [sample] = tool.operation.samples
    assert sample.is_form
    assert tool.inputs.of(sample) == {"title": "Tea", "n": 3, "tag": ["a", "b"]}


@pytest.mark.parametrize("extensions", [5, True, "persistedQuery", ["persistedQuery"]])
def test_extensions_that_are_not_an_object_make_no_persisted_query(extensions: object) -> None:
    body = {"operationName": "Rooms", "extensions": extensions}
    [tool] = tools_of(ask("POST /graphql", {"rooms": []}, body=body)).values()
    assert tool.operation.style == "rest"


def test_an_id_that_javascript_rounds_is_expected_as_a_page_reads_it() -> None:
    tools = tools_of(ask("GET /api/posts", {"posts": [{"id": 1234567890123456789}], "n": 1}))
    [call] = calls_of(tools["list_posts"])
    assert call.value == {"posts": [{"id": 1234567890123456800}], "n": 1}
    assert "id: z.number()" in schema(tools["list_posts"].result)


def test_an_id_that_javascript_rounds_is_passed_as_a_string() -> None:
    tools = tools_of(
        ask("GET /api/posts", [{"id": 1234567890123456789}]),
        ask("GET /api/posts/1234567890123456789", {"n": 1}),
        ask("GET /api/comments?from=1234567890123456789", {"comments": [{"n": 1}]}),
    )
    [called] = calls_of(tools["get_post"])
    assert called.arguments == {"postId": "1234567890123456789"}
    assert tools["list_comments"].pagination is None


def test_many_equal_requests_are_compared_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def count(request: Request) -> Comparable:
        nonlocal compared
        compared += 1
        return comparable(request)

    monkeypatch.setattr(calls, "comparable", count)
    [tool] = tools_of(*[ask("GET /api/items", [ITEM]) for _ in range(100)]).values()
    assert [call.is_stable for call in calls_of(tool)] == [True]
    assert compared < 500


def test_the_pages_of_a_site_may_be_at_an_ip_v6_address() -> None:
    site = read_site(
        Recording("http://[::1]:8000/", [ask("GET http://[::1]:8000/api/items", [ITEM])])
    )
    assert site.patterns == ["http://[::1]/*"]


def test_a_site_that_no_plugin_can_serve_is_an_error() -> None:
    site = replace(site_of(ask("GET /api/items", [ITEM])), recording=Recording("http://a..b/"))
    with pytest.raises(
        RecordingError, match=r"can serve http://a\.\.b/.* is not a valid host name"
    ):
        write_plugin(site, "shop", "ts")


@pytest.mark.parametrize(
    ("path", "is_read"),
    [
        ("/api/cart/add?id=5", False),
        ("/api/items/5/delete", False),
        ("/api/messages/markAsRead", False),
        ("/api/items/5", True),
        ("/api/addresses", True),
        ("/api/items/deleted", True),
    ],
)
def test_a_get_may_say_in_its_path_that_it_writes(path: str, is_read: bool) -> None:
    [tool] = tools_of(ask(f"GET {path}", ITEM)).values()
    assert tool.is_read is is_read
    assert ("readOnlyHint" in tool_source(tool, "ts")) is is_read


def test_a_request_that_works_only_when_it_is_repeated_is_called_by_no_test() -> None:
    asked = [ask("GET /api/inbox", status=401), ask("GET /api/inbox", [ITEM])]
    [tool] = tools_of(*asked).values()
    assert not [call for call in calls_of(tool) if not call.code]
    [tool] = tools_of(asked[1]).values()
    assert [call.value for call in calls_of(tool)] == [{"inbox": [ITEM]}]


def test_tools_have_variables_of_their_own_whatever_their_names_are() -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "params": {}}
    names = ("foo1_2", "foo12", "hasSession")
    tools = tools_of(*(ask("POST /rpc", {"result": 1}, body={**sent, "method": each})
                       for each in names))  # fmt: skip
    assert [export_name(each) for each in tools] == ["foo1_2", "foo12", "hasSession_"]


def test_a_request_with_more_members_than_anyone_would_fill_in_is_left_out() -> None:
    many = {f"member{number}": 1 for number in range(600)}
    assert not tools_of(
        ask("POST /api/items", ITEM, body=many), ask(f"GET /api/items?{urlencode(many)}", [ITEM])
    )


def test_a_url_may_have_no_path() -> None:
    tools = tools_of(ask("GET https://api.shop.example?id=1", ITEM))
    assert [*tools] == ["get_home"]


def test_a_request_that_sends_json_that_is_nested_too_deeply_is_left_out() -> None:
    deep = json.loads('{"in":' * 400 + "1" + "}" * 400)
    asked = {"query": "query Items { items }", "extensions": deep}
    assert not tools_of(ask("POST /graphql", {"data": ITEM}, body=asked))
