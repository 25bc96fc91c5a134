"""Answer for a site from a recording, in Playwright's sync API."""

import html
import re
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Error, Route, WebSocketRoute

from opentabs_py.core.recording.charsets import in_utf8
from opentabs_py.core.recording.exchange import (
    ABORTED,
    EVENT_SOURCE,
    UNFINISHED,
    Event,
    Exchange,
    Headers,
    Request,
)
from opentabs_py.core.recording.replay import Replay, becomes_get, is_event_stream, page_redirect
from opentabs_py.recording.traffic import event_text

EVERYTHING: Final = "**/*"
_ICON: Final = "/favicon.ico"  # Chromium asks every site for one
_TOKEN: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
# HARs of Chromium's DevTools write the values of a header that came several times as lines of one.
_BETWEEN_LINES: Final = re.compile(r"[\r\n\0]+")
_SOON: Final = 0.02  # s; messages of an event stream that are closer come together
# What runs in place of a site's service worker: recordings have what pages got, whoever answered
# them, so it answers nothing itself. But pages may wait until they have one.
_SERVICE_WORKER: Final = """
oninstall = () => skipWaiting();
onactivate = (event) => event.waitUntil(clients.claim());
"""
# These were about the connection, or make the browser connect.
_LEFT_OUT: Final = frozenset(
    {
        "alt-svc",
        "connection",
        "content-encoding",
        "content-length",
        "keep-alive",
        "nel",
        "report-to",
        "reporting-endpoints",
        "strict-transport-security",
        "transfer-encoding",
    }
)
# Playwright's names for Chromium's errors.
_ERRORS: Final = frozenset(
    {
        "accessdenied",
        "addressunreachable",
        "blockedbyclient",
        "blockedbyresponse",
        "connectionaborted",
        "connectionclosed",
        "connectionfailed",
        "connectionrefused",
        "connectionreset",
        "internetdisconnected",
        "namenotresolved",
        "timedout",
    }
)


class SiteReplay:
    """Answers the requests of a browser's pages from a recording.

    Args:
        replay: Finds the answers.
        is_ours: Returns whether a URL is of our own server.
        sleep: Waits for some seconds while Playwright dispatches events.
        timed: Whether WebSockets and event streams take as long as when they were recorded.
        open_for_new: Whether requests that are not in the recording go to the site.

    Attributes:
        answered: The requests that the recording has answered.
        broken: Why recorded answers could not be sent.
    """

    def __init__(
        self,
        replay: Replay,
        *,
        is_ours: Callable[[str], bool],
        sleep: Callable[[float], None],
        timed: bool,
        open_for_new: bool,
    ) -> None:
        self.replay = replay
        self.answered: set[Any] = set()
        self.broken: list[str] = []
        self._is_ours = is_ours
        self._sleep = sleep
        self._timed = timed
        self._open_for_new = open_for_new
        self._sent: dict[int, int] = {}  # messages of event streams, by the id of the exchange

    def serve(self, context: BrowserContext) -> None:
        """Answer from now on, until the context's routes are removed."""
        context.route(EVERYTHING, self._answer)

    def connect(self, socket: WebSocketRoute) -> None:
        """Answer a WebSocket."""
        if self._is_ours(socket.url):
            socket.connect_to_server()
            return
        script = self.replay.socket(socket.url, is_needed=not self._open_for_new)
        if script is None:
            if self._open_for_new:
                socket.connect_to_server()
            else:
                socket.close(code=1011, reason="not in the recording")
            return
        if script.socket.error is not None:
            if self._open_for_new:
                socket.close(code=1006)  # as for a connection that failed
            else:
                socket.connect_to_server()  # the proxy refuses it, so the page has its error too
            return

        def send() -> None:
            for delay, frame in script.next():
                if self._timed:
                    self._sleep(delay)
                socket.send(frame.data)

        def receive(data: str | bytes) -> None:
            if (why := script.receive(data)) is not None:
                self.broken.append(f"WebSocket {script.socket.url}\n{why}")
                socket.close(code=1011, reason="not in the recording")
            else:
                send()

        socket.on_message(receive)
        send()

    def _answer(self, route: Route) -> None:
        request = route.request
        url = request.url.partition("#")[0]
        if self._is_ours(url):
            route.continue_()
            return
        if request.service_worker is not None:
            self._answer_service_worker(route)
            return
        sent = Request(
            request.method,
            url,
            [*request.headers.items()],
            request.post_data_buffer or b"",
            request.resource_type,
        )
        is_icon = urlsplit(url).path == _ICON
        exchange = self.replay.answer(sent, is_needed=not (self._open_for_new or is_icon))
        if exchange is not None:
            self.answered.add(request)
            self._fulfill(route, exchange)
        elif self._open_for_new:
            route.continue_()
        elif is_icon:
            route.fulfill(status=404)
        else:
            route.abort("blockedbyclient")

    def _answer_service_worker(self, route: Route) -> None:
        if self._open_for_new:
            route.continue_()
        elif route.request.resource_type == "script":
            headers = {"content-type": "text/javascript", "service-worker-allowed": "/"}
            route.fulfill(headers=headers, body=_SERVICE_WORKER)
        else:
            route.abort("blockedbyclient")

    def _fulfill(self, route: Route, exchange: Exchange) -> None:
        to = page_redirect(exchange)
        gets = exchange.request.method == "GET" or becomes_get(exchange)
        if to is not None and gets and route.request.is_navigation_request():
            # Chromium would follow a redirect itself, without asking for its answer here.
            page = f'<meta http-equiv="refresh" content="0; url={html.escape(to)}">'
            headers = _headers(exchange)
            route.fulfill(headers={**headers, "content-type": "text/html"}, body=page)
            return
        answered = self.replay.follow(exchange, is_needed=not self._open_for_new)
        if answered is None and self._open_for_new:
            self.answered.discard(route.request)  # the site answers, and that is recorded
            route.continue_()
            return
        if answered is None:
            route.abort("blockedbyclient")
            return
        response = answered.response
        if response is None:
            moved = exchange.response
            if to is not None and moved is not None and answered.error == ABORTED:
                # Its page does not follow redirects (`redirect: "manual"`), and sees that one came.
                route.fulfill(status=moved.status, headers=_headers(exchange), body=b"")
            elif answered.error not in (UNFINISHED, ABORTED):
                route.abort(_error(answered.error))
            return  # it is left waiting, as it was; its page aborts it if it did so
        is_source = is_event_stream(answered) and route.request.resource_type == EVENT_SOURCE
        if response.body is None and answered.error == UNFINISHED and not is_source:
            # The page did not read it.
            route.fulfill(status=response.status, headers=_headers(answered), body=b"")
        elif response.body is None:
            what = "messages" if is_source else "body"
            self.broken.append(f"The recording lacks the {what} of {answered.request.url}.")
            route.abort("failed")
        elif is_source:
            self._stream(route, answered)
        else:
            route.fulfill(status=response.status, headers=_headers(answered), body=response.body)

    def _stream(self, route: Route, exchange: Exchange) -> None:
        """Send an event stream to an `EventSource`.

        One that asks again once it is over is left waiting.
        """
        response = exchange.response
        assert response is not None
        events = response.events
        sent = self._sent.get(id(exchange), 0)
        if sent and sent >= len(events):
            return
        if not self._timed or not events:
            self._sent[id(exchange)] = max(1, len(events))
            body = response.body or b""
        else:
            body = self._piece(exchange, events, sent)
        route.fulfill(status=response.status, headers=_headers(exchange), body=body)

    def _piece(self, exchange: Exchange, events: Sequence[Event], sent: int) -> bytes:
        """Return the next messages of an event stream.

        Playwright sends an answer as a whole. So the stream ends after each message, and says when
        the browser should ask for the next one.
        """
        until = sent + 1
        while until < len(events) and events[until].at - events[until - 1].at < _SOON:
            until += 1
        self._sent[id(exchange)] = until
        if not sent:
            self._sleep(max(0.0, events[0].at - exchange.started))
        text = "".join(event_text(each) for each in events[sent:until])
        if until < len(events):
            text = f"retry: {(events[until].at - events[until - 1].at) * 1000:.0f}\n{text}"
        return text.encode()


class Sockets:
    """Answers the WebSockets of a browser whose tests replay recordings.

    Such a route cannot be removed again, so there is one, for all tests.

    Args:
        context: The browser.

    Attributes:
        site: What answers; None between tests.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.site: SiteReplay | None = None
        context.route_web_socket(lambda _url: True, self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        site = self.site
        if site is None:
            socket.connect_to_server()
            return
        try:
            site.connect(socket)
        except Error:
            if site is self.site:  # otherwise the test has ended since then
                raise


def _headers(exchange: Exchange) -> dict[str, str]:
    response = exchange.response
    assert response is not None
    return _joined(in_utf8(response).headers)


def _joined(headers: Headers) -> dict[str, str]:
    """Return headers as Playwright wants them.

    Without what Chromium refuses: Playwright then says nothing, and the page waits for ever.
    """
    joined: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in _LEFT_OUT or _TOKEN.fullmatch(name) is None:
            continue
        between = "\n" if lower == "set-cookie" else ", "
        values = [joined[lower]] if lower in joined else []
        values += filter(None, _BETWEEN_LINES.split(value))
        joined[lower] = between.join(values)
    return joined


def _error(chromium: str | None) -> str:
    name = (chromium or "").removeprefix("net::ERR_").replace("_", "").lower()
    return name if name in _ERRORS else "failed"
