"""What happens in a page, and what clients have seen of it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from weakref import WeakSet

import anyio
from playwright.async_api import Dialog, Download, Frame, Page, Request

from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.core.text import shorten
from opentabs_py.hands.drawn_inputs import DrawnInputs
from opentabs_py.hands.editors import Editors
from opentabs_py.hands.tree import Node

KEPT: Final = 300  # messages and requests of each page
KEPT_GONE: Final = 1_000  # elements that a client has seen
KEPT_CLIENTS: Final = 16  # for each page; the snapshot of a large one takes some MB
LONGEST_MESSAGE: Final = 1_000  # characters
_OF_BROWSER: Final = ("chrome:", "chrome-extension:")  # such as the hundreds of its PDF viewer


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request of a page, and how it ended."""

    number: int
    request: Request
    failure: str | None


@dataclass(slots=True)
class Seen:
    """What a client has seen of a page.

    Attributes:
        page: What was in it when it last looked at all of it.
        nodes: What it saw in its last snapshot, by reference.
        earlier: What it saw before and is gone, without what was in it; the newest is last.
        lines: How many messages in the console it has read.
        requests: The number of the last request that it has read.
    """

    page: Sequence[Node] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict[str, Node])
    earlier: dict[str, Node] = field(default_factory=dict[str, Node])
    lines: int = 0
    requests: int = 0

    def look(self, nodes: Mapping[str, Node]) -> None:
        """Remember what is in the page now, and what was."""
        gone = {ref: node for ref, node in self.nodes.items() if ref not in nodes}
        self.earlier |= {ref: replace(node, children=[]) for ref, node in gone.items()}
        for ref in [*self.earlier][:-KEPT_GONE]:
            del self.earlier[ref]
        self.nodes = nodes


@dataclass(slots=True)
class Watched:
    """What happened in a page.

    Attributes:
        console: What it wrote there, with the kind, and without secrets.
        network: Its requests.
        downloads: The names of the files that it had downloaded, without secrets.
        dialog: The dialog that waits for an answer.
        has_dialog: Set while there is one.
        closed: Set once it is closed.
        moved: Set when it next shows another page, or is closed.
        opened: The pages that it opened in other tabs, as long as they are there.
        requests: How many requests have ended.
        downloaded: How many files it had downloaded.
        lines: How many messages were written to the console.
        editors: Its rich-text editors.
        drawn_inputs: Its inputs that have no reference of Playwright's.
        seen: What each client has seen of it, by its session; the one that looked last is last.
    """

    console: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    network: deque[PageRequest] = field(default_factory=lambda: deque(maxlen=KEPT))
    downloads: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    dialog: Dialog | None = None
    has_dialog: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event = field(default_factory=anyio.Event)
    moved: anyio.Event = field(default_factory=anyio.Event)
    opened: WeakSet[Page] = field(default_factory=WeakSet[Page])
    requests: int = 0
    downloaded: int = 0
    lines: int = 0
    editors: Editors = field(default_factory=Editors)
    drawn_inputs: DrawnInputs = field(default_factory=DrawnInputs)
    seen: dict[str | None, Seen] = field(default_factory=dict[str | None, Seen])

    def seen_by(self, client: SessionKey | None) -> Seen:
        """Return what a client has seen, by its session; None for all that have none."""
        seen = self.seen.pop(client) if client in self.seen else Seen()
        self.seen[client] = seen
        if len(self.seen) > KEPT_CLIENTS:
            del self.seen[next(iter(self.seen))]
        return seen

    def find_node(self, ref: str, client: SessionKey | None) -> Node | None:
        """Return the element of a reference as this client has seen it, or else another one."""
        self.seen_by(client)  # which is the last now
        seen = (each.nodes.get(ref) for each in reversed(self.seen.values()))
        return next((node for node in seen if node is not None), None)

    def handle_dialog(self, dialog: Dialog) -> None:
        """Record that a dialog has opened."""
        self.dialog = dialog
        self.has_dialog.set()

    def handle_closed(self) -> None:
        """Record that the dialog was answered."""
        if self.dialog is not None:
            self.dialog, self.has_dialog = None, anyio.Event()


def watch(page: Page, mask: Callable[[str], str]) -> Watched:
    """Return what happens in a page from now on.

    Args:
        page: The page.
        mask: Hides the secrets in what it writes to its console.
    """
    watched = Watched()

    def write(kind: str, text: str) -> None:
        watched.console.append((kind, shorten(mask(text), LONGEST_MESSAGE)))
        watched.lines += 1

    def end(request: Request) -> None:
        if request.url.startswith(_OF_BROWSER):
            return
        watched.requests += 1
        watched.network.append(PageRequest(watched.requests, request, request.failure))

    def save(download: Download) -> None:
        watched.downloaded += 1
        watched.downloads.append(mask(download.suggested_filename))

    def move(_frame: Frame) -> None:
        watched.moved.set()
        watched.moved = anyio.Event()

    def close(_page: Page) -> None:
        watched.closed.set()
        watched.moved.set()
        # They refer to the page, so that it would stay in memory.
        watched.network.clear()
        watched.opened.clear()
        watched.seen.clear()
        watched.editors = Editors()

    page.on("console", lambda message: write(message.type, message.text))
    page.on("pageerror", lambda error: write("uncaught", str(error)))
    page.on("requestfinished", end)
    page.on("requestfailed", end)
    page.on("popup", watched.opened.add)
    page.on("download", save)
    page.on("framenavigated", move)
    page.on("close", close)
    return watched
