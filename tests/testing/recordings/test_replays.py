"""What a replay does with a page's request."""

from dataclasses import dataclass, field
from typing import cast

import pytest
from playwright.sync_api import Route, WebSocketRoute

from opentabs_py.core.recording.exchange import (
    ABORTED,
    UNFINISHED,
    Exchange,
    RecordedSocket,
    Recording,
    Request,
    Response,
)
from opentabs_py.core.recording.replay import Index, Replay
from opentabs_py.testing.recordings.replays import SiteReplay

URL = "https://site.test/"
REDIRECT = Exchange(Request("GET", f"{URL}old"), Response(302, "", [("location", "/new")]))


@dataclass(eq=False)
class FakeRequest:
    """A request of a page's script."""

    url: str
    method: str = "GET"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    post_data_buffer: None = None
    service_worker: object = None
    resource_type: str = "fetch"

    def is_navigation_request(self) -> bool:
        return self.resource_type == "document"


@dataclass
class FakeRoute:
    """A request that waits for its answer."""

    request: FakeRequest
    done: list[str] = field(default_factory=list[str])
    headers: dict[str, str] = field(default_factory=dict[str, str])

    def continue_(self) -> None:
        self.done.append("sent to the site")

    def abort(self, code: str) -> None:
        self.done.append(f"aborted: {code}")

    def fulfill(self, *, body: bytes | str, headers: dict[str, str], status: int = 200) -> None:
        text = body if isinstance(body, str) else body.decode()
        self.done.append(f"answered: {status} {text}")
        self.headers = headers


@dataclass
class FakeSocket:
    """A WebSocket that a page opens."""

    url: str
    done: list[str] = field(default_factory=list[str])

    def connect_to_server(self) -> None:
        self.done.append("connected")

    def close(self, code: int) -> None:
        self.done.append(f"closed: {code}")

    def on_message(self, _handle: object) -> None:
        self.done.append("opened")


def a_replay(replay: Replay, *, open_for_new: bool = False) -> SiteReplay:
    return SiteReplay(
        replay, is_ours=lambda _: False, sleep=lambda _: None, timed=False,
        open_for_new=open_for_new,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("open_for_new", "done"), [(True, "sent to the site"), (False, "aborted: blockedbyclient")]
)
def test_the_target_of_a_redirect_is_recorded_on_request(open_for_new: bool, done: str) -> None:
    replay = Replay(Index(Recording(URL, [REDIRECT])))
    site = a_replay(replay, open_for_new=open_for_new)
    route = FakeRoute(FakeRequest(f"{URL}old"))
    site._answer(cast("Route", route))
    assert route.done == [done]
    assert (route.request in site.answered) is not open_for_new
    assert [each.request.url for each in replay.unanswered] == (
        [] if open_for_new else [f"{URL}new"]
    )


@pytest.mark.parametrize(
    ("response", "error", "done", "broken"),
    [
        (None, "net::ERR_CONNECTION_RESET", ["aborted: connectionreset"], []),
        (None, "net::ERR_NAME_NOT_RESOLVED", ["aborted: namenotresolved"], []),
        (None, "net::ERR_HTTP2_PROTOCOL_ERROR", ["aborted: failed"], []),
        (None, None, ["aborted: failed"], []),
        (None, UNFINISHED, [], []),
        (None, ABORTED, [], []),  # by the page, which does so again
        (Response(204, body=None), UNFINISHED, ["answered: 204 "], []),
        (Response(500, body=b"no"), None, ["answered: 500 no"], []),
        (Response(200, body=None), None, ["aborted: failed"],
         [f"The recording lacks the body of {URL}."]),
    ],
)  # fmt: skip
def test_a_request_ends_as_it_was_recorded_or_waits_as_it_did(
    response: Response | None, error: str | None, done: list[str], broken: list[str]
) -> None:
    exchange = Exchange(Request("GET", URL), response, error)
    site = a_replay(Replay(Index(Recording(URL, [exchange]))))
    route = FakeRoute(FakeRequest(URL))
    site._answer(cast("Route", route))
    assert (route.done, site.broken) == (done, broken)


@pytest.mark.parametrize(
    ("method", "status", "done"),
    [
        ("GET", 307, '<meta http-equiv="refresh" content="0; url=https://site.test/new">'),
        ("POST", 303, '<meta http-equiv="refresh" content="0; url=https://site.test/new">'),
        ("POST", 307, "posted"),
        ("POST", 308, "posted"),
    ],
)
def test_a_document_is_posted_again_if_its_redirect_says_so(
    method: str, status: int, done: str
) -> None:
    moved = Response(status, "", [("location", "/new")])
    exchanges = [
        Exchange(Request(method, f"{URL}old"), moved),
        Exchange(Request("POST", f"{URL}new"), Response(200, body=b"posted")),
    ]
    route = FakeRoute(FakeRequest(f"{URL}old", method, resource_type="document"))
    a_replay(Replay(Index(Recording(URL, exchanges))))._answer(cast("Route", route))
    assert route.done == [f"answered: 200 {done}"]


def test_a_page_that_follows_no_redirects_receives_one() -> None:
    exchanges = [REDIRECT, Exchange(Request("GET", f"{URL}new"), None, ABORTED)]
    route = FakeRoute(FakeRequest(f"{URL}old"))
    a_replay(Replay(Index(Recording(URL, exchanges))))._answer(cast("Route", route))
    assert (route.done, route.headers) == (["answered: 302 "], {"location": "/new"})


def test_headers_that_chromium_refuses_are_left_out_or_joined() -> None:
    # Playwright says nothing if Chromium refuses one, and the page would wait for ever.
    headers = [
        (":status", "200"),
        ("bad name", "x"),
        ("X-Several", "a\nb\r\nc\0"),
        ("set-cookie", "a=1\nb=2"),
        ("set-cookie", "c=3"),
    ]
    exchange = Exchange(Request("GET", URL), Response(200, "", headers, b""))
    route = FakeRoute(FakeRequest(URL))
    a_replay(Replay(Index(Recording(URL, [exchange]))))._answer(cast("Route", route))
    assert route.headers == {"x-several": "a, b, c", "set-cookie": "a=1\nb=2\nc=3"}


def test_text_says_that_it_is_in_utf8_as_recordings_are() -> None:
    headers = [("content-type", "text/html; charset=Shift_JIS")]
    exchange = Exchange(Request("GET", URL), Response(200, "", headers, "日本".encode()))
    route = FakeRoute(FakeRequest(URL))
    a_replay(Replay(Index(Recording(URL, [exchange]))))._answer(cast("Route", route))
    assert route.headers == {"content-type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(("kind", "answers"), [("fetch", 2), ("eventsource", 1)])
def test_only_an_event_source_is_left_waiting_once_it_has_all_messages(
    kind: str, answers: int
) -> None:
    headers = [("content-type", "text/event-stream")]
    exchange = Exchange(Request("GET", URL), Response(200, "", headers, b"data: x\n\n"))
    site = a_replay(Replay(Index(Recording(URL, [exchange]))))
    routes = [FakeRoute(FakeRequest(URL, resource_type=kind)) for _ in range(2)]
    for each in routes:
        site._answer(cast("Route", each))
    done = [what for each in routes for what in each.done]
    assert done == ["answered: 200 data: x\n\n"] * answers


@pytest.mark.parametrize(
    ("kind", "done", "broken"),
    [
        ("fetch", "answered: 200 ", []),
        ("eventsource", "aborted: failed", [f"The recording lacks the messages of {URL}."]),
    ],
)
def test_an_event_source_whose_messages_could_not_be_recorded_fails_the_test(
    kind: str, done: str, broken: list[str]
) -> None:
    headers = [("content-type", "text/event-stream")]
    exchange = Exchange(Request("GET", URL), Response(200, "", headers, None), UNFINISHED)
    site = a_replay(Replay(Index(Recording(URL, [exchange]))))
    route = FakeRoute(FakeRequest(URL, resource_type=kind))
    site._answer(cast("Route", route))
    assert (route.done, site.broken) == ([done], broken)


@pytest.mark.parametrize(
    ("error", "open_for_new", "done"),
    [
        (None, False, "opened"),
        ("Unauthorized: 401", False, "connected"),  # to the proxy, which refuses it
        ("Unauthorized: 401", True, "closed: 1006"),
    ],
)
def test_a_websocket_that_was_refused_is_refused(
    error: str | None, open_for_new: bool, done: str
) -> None:
    recorded = RecordedSocket("wss://site.test/", error=error)
    site = a_replay(Replay(Index(Recording(URL, sockets=[recorded]))), open_for_new=open_for_new)
    socket = FakeSocket("wss://site.test/")
    site.connect(cast("WebSocketRoute", socket))
    assert socket.done == [done]
