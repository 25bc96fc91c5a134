"""The traffic between pages and their site, as Playwright reports it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.async_api import Error

from opentabs_py.recording.traffic import Steps, TrafficRecorder


class Context:
    """A context, its page, a WebSocket or a session: the recorder listens, the test reports."""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self.pages: list[Any] = []
        self._listeners: dict[str, Callable[[Any], None]] = {}

    def on(self, event: str, listener: Callable[[Any], None]) -> None:
        self._listeners[event] = listener

    def remove_listener(self, event: str, _listener: Callable[[Any], None]) -> None:
        del self._listeners[event]

    def new_cdp_session(self, _page: Any) -> "Context":
        return self

    def send(self, _method: str) -> None: ...

    def report(self, event: str, request: Any) -> None:
        self._listeners[event](request)


@dataclass(eq=False)
class Request:
    """A request that was sent and never answered."""

    url: str
    sent: float  # ms since 1970, when Chromium sent it
    method: str = "GET"
    resource_type: str = "fetch"
    failure: str = "net::ERR_FAILED"
    post_data_buffer: None = None
    service_worker: object = None
    headers: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def timing(self) -> dict[str, float]:
        return {"startTime": self.sent}

    def headers_array(self) -> list[dict[str, str]]:
        return []


@dataclass(eq=False)
class Response:
    """A response whose body the browser no longer has."""

    request: Request
    status: int = 200
    status_text: str = "OK"

    def headers_array(self) -> list[dict[str, str]]:
        return []

    def body(self) -> bytes:
        raise Error("No resource with given identifier found")


def at_once(steps: Steps) -> None:
    """Run steps whose responses are available."""
    answer = None
    try:
        while True:
            answer = steps.send(answer)
    except StopIteration:
        pass


def test_requests_are_in_the_order_in_which_pages_made_them() -> None:
    context = Context()
    recorder = TrafficRecorder(context, SimpleNamespace(run=at_once))
    # Chromium may send the second first.
    first, second, third = (
        Request(f"https://chat.example/{name}", sent)
        for name, sent in (("channels", 2_000.0), ("messages", 1_000.0), ("open", 500.0))
    )
    for each in (first, second, third):
        context.report("request", each)
    context.report("requestfailed", second)
    context.report("requestfailed", first)

    exchanges, _ = recorder.stop()

    assert [each.request.url.rpartition("/")[2] for each in exchanges] == [
        "channels",
        "messages",
        "open",
    ]
    assert [each.started for each in exchanges[:2]] == [2.0, 1.0]


def test_a_request_that_ends_just_before_the_recorder_stops_is_recorded_once() -> None:
    context = Context()
    later: list[Steps] = []
    recorder = TrafficRecorder(context, SimpleNamespace(run=later.append))
    context.report("request", only := Request("https://chat.example/channels", 1_000.0))
    context.report("requestfailed", only)

    exchanges, _ = recorder.stop()
    for steps in later:  # the driver runs them when the event loop does
        at_once(steps)

    assert [each.request.url for each in exchanges] == [only.url]
    assert recorder.count == 0


@pytest.mark.parametrize(("has_messages", "error"), [(False, "Unauthorized: 401"), (True, None)])
def test_a_websocket_that_could_not_be_opened_has_an_error(
    has_messages: bool, error: str | None
) -> None:
    context, page, socket = Context(), Context(), Context("wss://chat.example/")
    context.pages.append(page)
    recorder = TrafficRecorder(context, SimpleNamespace(run=at_once))
    page.report("websocket", socket)
    if has_messages:
        socket.report("framereceived", "hello")
    socket.report("socketerror", "Unauthorized: 401")
    _, [recorded] = recorder.stop()
    assert recorded.error == error


@pytest.mark.parametrize(("kind", "body"), [("fetch", None), ("ping", b"")])
def test_a_beacon_loses_no_body_for_no_page_can_read_it(kind: str, body: bytes | None) -> None:
    context = Context()
    recorder = TrafficRecorder(context, SimpleNamespace(run=at_once))
    beacon = Request("https://chat.example/seen", 1_000.0, resource_type=kind)
    context.report("request", beacon)
    context.report("response", Response(beacon))
    context.report("requestfinished", beacon)
    [exchange], _ = recorder.stop()
    assert exchange.response is not None
    assert exchange.response.body == body


def record_stream(
    has_ended: bool, skip: Callable[[Any], bool] = lambda _request: False
) -> list[str]:
    """Record an event stream, and return the URLs of what was recorded."""
    context = Context()
    context.pages.append(Context())
    recorder = TrafficRecorder(context, SimpleNamespace(run=at_once), skip=skip)
    url = "https://chat.example/events"
    stream = Request(f"{url}#now", 1_000.0, resource_type="eventsource")
    context.report("request", stream)
    about = {"requestId": "1", "type": "EventSource", "request": {"url": url, "headers": {}}}
    context.report("Network.requestWillBeSent", about)
    if has_ended:
        context.report("requestfailed", stream)
    exchanges, _ = recorder.stop()
    return [each.request.url for each in exchanges]


@pytest.mark.parametrize("has_ended", [False, True])
def test_an_event_stream_is_recorded_once_even_if_its_url_has_a_fragment(has_ended: bool) -> None:
    assert record_stream(has_ended) == ["https://chat.example/events"]


@pytest.mark.parametrize("has_ended", [False, True])
def test_an_event_stream_that_a_recording_answers_is_not_recorded(has_ended: bool) -> None:
    assert record_stream(has_ended, skip=lambda _request: True) == []
