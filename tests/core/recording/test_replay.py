"""Which recorded response a request gets, and the error if there is none."""

import gzip
import json
from typing import Any

import pytest

from opentabs_py.core.recording.exchange import (
    Exchange,
    Frame,
    RecordedSocket,
    Recording,
    Request,
    Response,
)
from opentabs_py.core.recording.matching import (
    Difference,
    comparable,
    differences,
    distance,
    is_volatile,
)
from opentabs_py.core.recording.replay import (
    Index,
    Replay,
    SocketScript,
    is_event_stream,
    page_redirect,
    redirect,
)

SITE = "https://site.test"
JSON = [("content-type", "application/json")]
FORM = [("content-type", "application/x-www-form-urlencoded")]
PARTS = [("content-type", "multipart/form-data; boundary=x")]


def get(path: str, **more: Any) -> Request:
    return Request("GET", SITE + path, **more)


def post(path: str, body: Any, headers: Any = JSON) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", SITE + path, headers, raw)


def answered(request: Request, body: bytes = b"", status: int = 200, to: str = "") -> Exchange:
    return Exchange(request, Response(status, headers=[("location", to)] if to else [], body=body))


def same(one: Request, other: Request, volatile: tuple[str, ...] = ()) -> bool:
    a, b = comparable(one, volatile), comparable(other, volatile)
    assert (a.key == b.key) == (distance(a, b) == 0) == (not differences(a, b))
    return a.key == b.key


def body(exchange: Exchange | None) -> bytes | None:
    assert exchange is not None
    assert exchange.response is not None
    return exchange.response.body


def replaying(recording: Recording) -> Replay:
    return Replay(Index(recording))


# --- which requests are the same ---


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (get("/a?b=1&c=2"), get("/a?c=2&b=1")),
        (get("/a%3Ab/c%40d%20%FF"), get("/a:b/c@d%20%ff")),
        (get("/a\ud83d"), get("/a%EF%BF%BD")),
        (get("/a?_=1&b=1"), get("/a?b=1&_=2")),
        (get("/a?cache-bust=1"), get("/a?cache-bust=2")),
        (get(""), get("/")),
        (get("/a", headers=[("x", "1")]), get("/a")),
        (post("/a", {"a": 1, "b": [2]}), post("/a", {"b": [2], "a": 1})),
        (post("/a", {"a": 1, "requestId": 7}), post("/a", {"a": 1, "requestId": 8})),
        (post("/a", b"b=1&a=2", FORM), post("/a", b"a=2&b=1", FORM)),
        (post("/a", b"b=1&a=2&ts=1", []), post("/a", b"a=2&b=1&ts=2", [])),
        (get("/a?request_id=1"), get("/a?request_id=2")),
        (post("/a", b"{}", []), post("/a", b"{ }", [])),
        (post("/a", b"[1]", []), post("/a", b"[ 1 ]", [])),
        (
            post(
                "/a", b"--x1\r\nv\r\n--x1--", [("content-type", "multipart/form-data; boundary=x1")]
            ),
            post(
                "/a", b"--y2\r\nv\r\n--y2--", [("content-type", "multipart/form-data; boundary=y2")]
            ),
        ),
        (
            post("/graphql", {"query": "query A { a }", "variables": {}}),
            post("/graphql", {"query": "query A {\n  a\n}", "variables": {}}),
        ),
        (
            post("/graphql", [{"query": "query A { a }"}]),
            post("/graphql", [{"query": "query A {\n  a\n}"}]),
        ),
    ],
)
def test_requests_are_the_same_but_for_what_does_not_count(one: Request, other: Request) -> None:
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (get("/a"), Request("POST", SITE + "/a")),
        (get("/a"), Request("GET", "https://other.test/a")),
        (get("/a"), get("/b")),
        (get("/a?b=1"), get("/a?b=2")),
        (get("/a?b=1"), get("/a?b=1&b=2")),
        (get("/a?b="), get("/a")),
        (post("/a", {"a": 1}), post("/a", {"a": "1"})),
        (post("/a", {"a": []}), post("/a", {"a": {}})),
        (get("/a?b=1&b=2&b=3"), get("/a?b=1&b=2&b=4")),
        (post("/a", {"id": 1}), post("/a", {"id": 2})),
        (post("/a", {"a": "x y"}), post("/a", {"a": "x  y"})),
        (post("/a", b"--x\r\nv\r\n--x--", PARTS), post("/a", b"--x\r\nw\r\n--x--", PARTS)),
        (post("/a", b"x", []), post("/a", b"y", [])),
        (post("/a", b"{x", JSON), post("/a", b"{y", JSON)),
        (post("/a", b"\r\nx", [("content-type", "multipart/form-data")]), post("/a", b"x", [])),
        (
            post("/graphql", {"query": "query A { a }"}),
            post("/graphql", {"query": "query B { a }"}),
        ),
        (
            post("/graphql", {"operationName": "A", "extensions": {}}),
            post("/graphql", {"operationName": "B", "extensions": {}}),
        ),
        (post("/graphql", [{"query": "{ a }"}, 1]), post("/graphql", [{"query": "{ b }"}, 1])),
    ],
)
def test_requests_differ_in_what_counts(one: Request, other: Request) -> None:
    assert not same(one, other)


@pytest.mark.parametrize(
    ("sent", "operation"),
    [
        ({"query": "query A { a }"}, "A"),
        ({"query": "query A { a }", "operationName": "B"}, "B"),
        ({"query": "{ a }"}, ""),
        ({"operationName": "A", "extensions": {}}, "A"),
        ({"operationName": "A"}, ""),
        ([{"query": "query A { a }"}, {"query": "{ a }"}, {"query": "mutation B { b }"}], "A B"),
    ],
)
def test_the_operations_of_a_request_have_names(sent: Any, operation: str) -> None:
    assert comparable(post("/graphql", sent)).operation == operation


@pytest.mark.parametrize(
    ("headers", "recorded", "sent", "said"),
    [
        ([], b"a", b"b", "body: recorded a, sent b"),
        (JSON, b"{a", b"{b", "body: recorded {a, sent {b"),
        ([], b"n=1&m=2", b"n=1&m=3", "body m: recorded 2, sent 3"),
        (PARTS, b"--x\r\na", b"--x\r\nb", "body: recorded --\r\na, sent --\r\nb"),
        (FORM, b"n=1&n=2&n=3", b"n=1&n=4&n=5", "body n (2): recorded 2, sent 4"),
        (FORM, b"n=1&n=2&n=3", b"n=1&n=2&n=5", "body n (3): recorded 3, sent 5"),
    ],
)
def test_a_body_that_is_not_json_differs_in_its_text_or_fields(
    headers: Any, recorded: bytes, sent: bytes, said: str
) -> None:
    found = differences(
        comparable(post("/a", recorded, headers)), comparable(post("/a", sent, headers))
    )
    assert str(found[0]) == said
    assert comparable(post("/a", recorded, headers)).operation == ""


def test_users_name_members_that_do_not_count() -> None:
    one, other = get("/a?sig=1"), get("/a?sig=2")
    assert not same(one, other)
    assert same(one, other, ("sig",))


def test_a_difference_says_what_was_recorded_and_what_was_sent() -> None:
    recorded = comparable(post("/a?x=1", {"a": {"b": 1}, "q": 1}))
    sent = comparable(post("/c/d?y=1", {"a": {"b": 2}, "q": 1}))
    assert [str(each) for each in differences(recorded, sent)] == [
        "path: recorded /a, sent /c/d",
        "query x: recorded 1, sent nothing",
        "query y: recorded nothing, sent 1",
        "body a.b: recorded 1, sent 2",
    ]
    assert distance(recorded, sent) == 3 * 2 + 1 + 1 + 1
    assert str(Difference("method", "", "GET", "POST")) == "method: recorded GET, sent POST"
    assert len(str(Difference("body", "a", "b" * 9_000, None))) < 250


# --- answers ---


def test_equal_requests_are_answered_in_order_and_then_by_the_last() -> None:
    replay = replaying(Recording("", [answered(get("/a"), b"1"), answered(get("/a"), b"2")]))
    assert [body(replay.answer(get("/a"))) for _ in range(4)] == [b"1", b"2", b"2", b"2"]
    assert replay.unanswered == []


def test_what_is_not_needed_is_not_noted() -> None:
    replay = replaying(Recording("", [answered(get("/a"))]))
    assert replay.answer(get("/b"), is_needed=False) is None
    assert replay.socket("wss://site.test/", is_needed=False) is None
    assert replay.unanswered == []


def test_a_recording_can_be_replayed_again_from_its_beginning() -> None:
    index = Index(Recording("", [answered(post("/a", {}))]))
    assert [Replay(index).answer(post("/a", {})) is None for _ in range(2)] == [False, False]


def test_a_write_is_answered_only_as_often_as_it_was_recorded() -> None:
    once = post("/a", {})
    replay = replaying(Recording("", [answered(once)]))
    assert replay.answer(once) is not None
    assert replay.answer(once) is None
    assert "has this request only once" in str(replay.unanswered[0])

    twice = replaying(Recording("", [answered(once), answered(once)]))
    assert [twice.answer(once) is None for _ in range(3)] == [False, False, True]
    assert "only 2 times" in str(twice.unanswered[0])


UPLOAD = Request("POST", SITE + "/files", [*PARTS, ("content-length", "198")])


def test_an_upload_is_answered_although_its_body_is_not_recorded() -> None:
    form = answered(post("/files", b"--x\r\nform", PARTS), b"1")
    replay = replaying(Recording("", [answered(UPLOAD, b"2"), form, answered(UPLOAD, b"3")]))
    for sent, said in (("one", b"2"), ("form", b"1"), ("two", b"3")):
        assert body(replay.answer(post("/files", f"--x\r\n{sent}".encode(), PARTS))) == said
    assert replay.answer(post("/files", b"three", PARTS)) is None
    [unanswered] = replay.unanswered
    assert unanswered.why == "The recording has this request only 2 times."


def test_a_body_that_is_not_recorded_is_not_a_difference() -> None:
    replay = replaying(Recording("", [answered(UPLOAD)]))
    assert replay.answer(post("/other", b"one", PARTS)) is None
    assert replay.unanswered[0].why.splitlines()[1:] == [
        "  path: recorded /files, sent /other",
    ]


def test_the_nearest_recorded_request_is_shown() -> None:
    recorded = [answered(get("/api/a?page=1")), answered(get("/other/thing"))]
    replay = replaying(Recording("", recorded))
    assert replay.answer(get("/api/a?page=9")) is None
    [missing] = replay.unanswered
    assert str(missing) == (
        f"GET {SITE}/api/a?page=9\n"
        f"nearest recorded: GET {SITE}/api/a?page=1\n"
        "  query page: recorded 1, sent 9"
    )


def test_many_differences_are_counted() -> None:
    replay = replaying(Recording("", [answered(get("/a"))]))
    assert replay.answer(get("/a?" + "&".join(f"n{i}={i}" for i in range(12)))) is None
    assert str(replay.unanswered[0]).endswith("  and 4 more differences")


def test_an_empty_recording_says_so() -> None:
    replay = replaying(Recording(""))
    assert replay.answer(get("/a")) is None
    assert "The recording is empty." in str(replay.unanswered[0])


# --- redirects ---


def test_a_page_and_what_its_scripts_read_at_the_same_url_are_told_apart() -> None:
    opened = get("/list", kind="document")
    exchanges = [
        answered(opened, b"page 1"),
        answered(get("/list"), b"data 1"),
        answered(get("/list"), b"data 2"),
        answered(opened, b"page 2"),
    ]
    replay = replaying(Recording("", exchanges))
    asked = [get("/list"), opened, opened, opened, get("/list"), get("/list")]
    expected = [b"data 1", b"page 1", b"page 2", b"page 2", b"data 2", b"data 2"]
    assert [body(replay.answer(each)) for each in asked] == expected


def test_a_part_of_a_file_is_answered_with_that_part() -> None:
    def part(range_: str) -> Request:
        return get("/film", headers=[("range", range_)])

    whole, first, second = get("/film"), part("bytes=0-9"), part("bytes=10-19")
    exchanges = [answered(first, b"1"), answered(second, b"2"), answered(whole, b"12")]
    replay = replaying(Recording("", exchanges))
    asked = [whole, second, first, first, part("bytes=5-")]
    expected = [b"12", b"2", b"1", b"1", b"12"]
    assert [body(replay.answer(each)) for each in asked] == expected


def test_a_script_may_read_pages_and_then_continues_where_the_browser_was() -> None:
    opened = get("/list", kind="document")
    replay = replaying(Recording("", [answered(opened, b"page 1"), answered(opened, b"page 2")]))
    asked = [opened, get("/list"), opened]
    expected = [b"page 1", b"page 2", b"page 2"]
    assert [body(replay.answer(each)) for each in asked] == expected


def test_redirects_are_followed_within_the_recording() -> None:
    exchanges = [
        answered(post("/a", {"n": 1}), status=303, to="/b#part"),
        answered(get("/b"), status=302, to="c"),
        answered(get("/c"), b"end"),
        answered(post("/k", {"n": 1}), status=307, to="/l"),
        answered(post("/l", {"n": 1}), b"kept"),
        answered(get("/lost"), status=301, to="/nowhere"),
        answered(get("/circle"), status=301, to="/circle"),
        answered(get("/odd"), b"odd", status=302),
        Exchange(get("/failed"), None, "net::ERR_FAILED"),
    ]
    replay = replaying(Recording("", exchanges))

    def end(request: Request) -> Exchange | None:
        found = replay.answer(request)
        assert found is not None
        return replay.follow(found)

    assert body(end(post("/a", {"n": 1}))) == b"end"
    assert body(end(post("/k", {"n": 1}))) == b"kept"
    assert body(end(get("/odd"))) == b"odd"
    assert end(get("/failed")) == exchanges[-1]
    assert end(get("/circle")) is not None  # it stops somewhere
    assert replay.unanswered == []
    assert end(get("/lost")) is None
    assert replay.unanswered[0].request.url == f"{SITE}/nowhere"
    assert redirect(exchanges[0]) == f"{SITE}/b"


def test_an_event_stream_is_known_by_its_type() -> None:
    stream = Response(200, headers=[("Content-Type", "text/event-stream; charset=utf-8")])
    assert is_event_stream(Exchange(get("/a"), stream))
    assert not is_event_stream(answered(get("/a")))
    assert not is_event_stream(Exchange(get("/a"), None))


# --- WebSockets ---


def test_websockets_of_one_address_come_in_order_and_the_last_again() -> None:
    one, two = (
        RecordedSocket("wss://site.test/s?t=1", 1.0),
        RecordedSocket("wss://site.test/s?t=2", 2.0),
    )
    replay = replaying(Recording("", sockets=[one, two]))
    scripts = [replay.socket("wss://site.test/s?t=9") for _ in range(3)]
    assert [script and script.socket for script in scripts] == [one, two, two]
    assert replay.socket("wss://site.test/other") is None
    assert "no WebSocket with this URL" in str(replay.unanswered[0])


def test_the_site_answers_each_message_as_it_did() -> None:
    frames = [
        Frame(1.5, False, "hello"),
        Frame(2.0, True, '{"n": 1, "ts": 5}'),
        Frame(2.5, False, "one"),
        Frame(2.75, False, b"\x01"),
        Frame(3.0, True, b"\x02"),
    ]
    script = SocketScript(RecordedSocket("wss://site.test/", 1.0, frames))

    assert script.next() == [(0.5, frames[0])]
    assert script.next() == []
    assert script.receive('{"ts": 6, "n": 1}') is None
    assert script.next() == [(0.5, frames[2]), (0.25, frames[3])]
    assert script.receive('{"n": 1}') is None  # again, like a heartbeat
    assert script.receive("else") == "The page sent else\nrecorded: 1 byte"
    assert script.receive(b"\x02") is None
    assert script.receive(b"\x03") == "The page sent 1 byte\nrecorded: nothing more"


def test_messages_that_are_not_reported_while_recording_are_ignored() -> None:
    frames = [Frame(1.0, True, "a"), Frame(2.0, False, "b")]
    script = SocketScript(RecordedSocket("wss://site.test/", 0.0, frames))
    assert script.receive("") is None
    assert script.receive(b"of a Blob") is None
    assert script.next() == []
    assert script.receive("a") is None
    assert script.next() == [(1.0, frames[1])]


def test_messages_may_come_in_another_order() -> None:
    frames = [Frame(1.0, True, "a"), Frame(2.0, True, "b"), Frame(3.0, False, "c")]
    script = SocketScript(RecordedSocket("wss://site.test/", 0.0, frames))
    assert script.receive("x") == "The page sent x\nrecorded: a"
    assert script.receive("b") is None
    assert script.next() == []
    assert script.receive("a") is None
    assert script.next() == [(2.0, frames[2])]


# --- details ---


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        (get("/api/items/9"), "GET https://site.test/api/items/1"),
        (get("/api/items/1/more"), "GET https://site.test/api/items/1"),
        (get("/api/users/1?x=1"), "GET https://site.test/api/users/1"),
        (post("/api/users/2", {"a": 1}), "POST https://site.test/api/users/1"),
        (Request("GET", "https://other.test/zzz"), "GET https://other.test/"),
        (
            post("/graphql", {"query": "query B { b }", "variables": {"n": 2}}),
            "POST https://site.test/graphql?b",
        ),
    ],
)
def test_the_nearest_request_is_the_one_that_was_most_likely_meant(
    asked: Request, nearest: str
) -> None:
    replay = replaying(
        Recording(
            "",
            [
                answered(get("/x")),
                answered(get("/api/items/1")),
                answered(get("/api/users/1")),
                answered(post("/api/users/1", {"a": 1})),
                answered(Request("GET", "https://other.test/")),
                answered(post("/graphql?a", {"query": "query A { a }", "variables": {"n": 2}})),
                answered(post("/graphql?b", {"query": "query B { b }", "variables": {"n": 1}})),
            ],
        )
    )
    replay.answer(asked)
    assert f"nearest recorded: {nearest}\n" in str(replay.unanswered[0])


@pytest.mark.parametrize(
    ("to", "then"),
    [("/app#/inbox", "/app#/inbox"), ("/app", "/app"), ("#part", "/old#part"), ("http://[", None)],
)
def test_a_page_is_redirected_to_the_fragment_that_a_redirect_has(
    to: str, then: str | None
) -> None:
    exchange = answered(get("/old"), status=302, to=to)
    assert page_redirect(exchange) == (then and f"{SITE}{then}")


def test_a_redirect_that_keeps_the_method_keeps_body_and_kind() -> None:
    first = Request("POST", f"{SITE}/a", JSON, b'{"n": 1}', "xhr")
    replay = replaying(Recording("", [answered(first, status=308, to="/b")]))
    found = replay.answer(first)
    assert found is not None
    assert replay.follow(found) is None
    assert replay.unanswered[0].request == Request("POST", f"{SITE}/b", JSON, b'{"n": 1}', "xhr")

    other = Request("POST", f"{SITE}/a", JSON, b'{"n": 1}', "xhr")
    replay = replaying(Recording("", [answered(other, status=302, to="/b")]))
    found = replay.answer(other)
    assert found is not None
    assert replay.follow(found) is None
    assert replay.unanswered[0].request == Request("GET", f"{SITE}/b", JSON, b"", "xhr")


@pytest.mark.parametrize(
    ("method", "status", "then"),
    [
        ("HEAD", 301, "HEAD"),
        ("PUT", 302, "PUT"),
        ("DELETE", 301, "DELETE"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("PATCH", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("GET", 303, "GET"),
        ("POST", 307, "POST"),
        ("PUT", 308, "PUT"),
    ],
)
def test_a_redirect_changes_the_method_only_where_browsers_do(
    method: str, status: int, then: str
) -> None:
    first = Request(method, f"{SITE}/a")
    end = answered(Request(then, f"{SITE}/b"), b"end")
    replay = replaying(Recording("", [answered(first, status=status, to="/b"), end]))
    found = replay.answer(first)
    assert found is not None
    assert replay.follow(found) == end


def test_users_name_members_of_messages_and_sockets_that_do_not_count() -> None:
    socket = RecordedSocket(
        "wss://site.test/s?sig=1", 0.0, [Frame(1.0, True, '{"sig": 1, "n": 1}')]
    )
    replay = Replay(Index(Recording("", sockets=[socket]), ("sig",)))
    script = replay.socket("wss://site.test/s?sig=2#part")
    assert script is not None
    assert script.socket == socket
    assert script.receive('{"sig": 2, "n": 1}') is None
    assert SocketScript(socket).receive('{"sig": 2, "n": 1}') is not None


def test_a_body_that_is_not_utf_8_is_compared() -> None:
    assert same(post("/a", b"\xff\xfe", []), post("/a", b"\xff\xfe", []))
    assert not same(post("/a", b"\xffa", []), post("/a", b"\xffb", []))


def test_a_body_that_the_page_has_compressed_is_compared_by_its_contents() -> None:
    octets = [("content-type", "application/octet-stream")]
    one, other, third = (
        post("/", gzip.compress(each, level, mtime=mtime), octets)
        for each, level, mtime in ((b'{"n": 1}', 1, 1), (b'{"n": 1}', 9, 2), (b'{"n": 2}', 1, 1))
    )
    assert same(one, other)
    assert not same(one, third)


def test_empty_fields_of_a_form_count() -> None:
    assert not same(post("/a", b"a=&b=1", FORM), post("/a", b"b=1", FORM))
    assert same(post("/a", b"ts=1&b=1", FORM), post("/a", b"ts=2&b=1", FORM))


def test_members_that_only_prevent_caching_are_known_however_they_are_written() -> None:
    names = ["_", "_t", "cacheBust", "Request-Id", "page"]
    assert [is_volatile(each) for each in names] == [True, True, True, True, False]
