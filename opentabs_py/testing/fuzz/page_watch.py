"""Watch pages during calls: their requests, and whether cancelled tools have stopped."""

from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Self

from playwright.sync_api import BrowserContext, ConsoleMessage, Error, Page, Request, WebSocket

from opentabs_py.testing.runtime_notes import parse_note


class PageWatch:
    """Watches the pages of a browser that a function selects by URL, while it is entered.

    Args:
        context: The browser.
        is_watched: Whether a page with this URL is to be watched.
        tool: The tool that is called there: the plugin's name, a space, and its name in the plugin.

    Attributes:
        requested: The URLs that watched pages have requested.
    """

    def __init__(
        self, context: BrowserContext, is_watched: Callable[[str], bool], tool: str
    ) -> None:
        self.requested: list[str] = []
        self._context = context
        self._is_watched = is_watched
        self._tool = tool
        self._cancelled: list[float] = []
        self._stopped: list[float] = []
        self._listening: list[tuple[Any, str, Callable[..., None]]] = []

    def __enter__(self) -> Self:
        self._listen(self._context, "request", self._note_request)
        self._listen(self._context, "console", self._note_console)
        self._listen(self._context, "page", self._listen_to_page)
        for page in self._context.pages:
            self._listen_to_page(page)
        return self

    def __exit__(self, *_: object) -> None:
        for target, event, listener in self._listening:
            with suppress(KeyError, Error):
                target.remove_listener(event, listener)

    @property
    def pages(self) -> list[Page]:
        """The watched pages that are open."""
        return [page for page in self._context.pages if self._is_watched(page.url)]

    def stopping_time(self) -> float | None:
        """Return how long ago a tool was cancelled that still runs, or how long the last one took.

        None if no tool was cancelled while it ran. There is at most one at a time.
        """
        if not self._cancelled:
            return None
        has_stopped = len(self._stopped) == len(self._cancelled)
        return (self._stopped[-1] if has_stopped else monotonic()) - self._cancelled[-1]

    @property
    def is_stopping(self) -> bool:
        """Whether a tool still runs whose call was cancelled."""
        return len(self._cancelled) > len(self._stopped)

    def forget_cancelled(self) -> None:
        """Forget the tools that were cancelled."""
        self._cancelled.clear()
        self._stopped.clear()

    def _listen(self, target: Any, event: str, listener: Callable[..., None]) -> None:
        target.on(event, listener)
        self._listening.append((target, event, listener))

    def _listen_to_page(self, page: Page) -> None:
        def note_socket(socket: WebSocket) -> None:
            if self._is_watched(page.url):
                self.requested.append(socket.url)

        self._listen(page, "websocket", note_socket)

    def _note_request(self, request: Request) -> None:
        with suppress(Error):  # of a service worker, or a document that has not begun
            if self._is_watched(request.frame.page.url):
                self.requested.append(request.url)

    def _note_console(self, message: ConsoleMessage) -> None:
        note = parse_note(message.text) if message.type == "debug" else None
        if note is not None and note.tool == self._tool:
            (self._stopped if note.has_stopped else self._cancelled).append(monotonic())
