"""Choose when to take screenshots of a watched test, and of which pages."""

from playwright.sync_api import BrowserContext, Page

from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.isolation import pages_of
from opentabs_py.testing.notes import RunListener
from opentabs_py.testing.thread import ServerThread


class Screenshots:
    """Lets a listener look at a test's pages.

    Args:
        listener: Receives the screenshots.
        session: The server.
        context: The browser.
        thread: The server's thread.
    """

    def __init__(
        self,
        listener: RunListener,
        session: OpenTabs,
        context: BrowserContext,
        thread: ServerThread,
    ) -> None:
        self._listener = listener
        self._session = session
        self._context = context
        self._thread = thread

    def before(self, tool: str) -> None:
        """Show the page of a call that is about to start."""
        self._listener.look_before(tool, self.pages_for)

    def after(self) -> None:
        """Show the pages of the calls that have ended."""
        self._listener.look_after(self.pages_for)

    def pages_for(self, tool: str) -> list[Page]:
        """Return the test's pages: those in which a tool can run, or else all, the last first."""
        pages = pages_of(self._context)[::-1]
        urls = {_plain(url) for url in self._thread.do(self._urls_for, tool)}
        return [page for page in pages if _plain(page.url) in urls] or pages

    def _urls_for(self, tool: str) -> list[str]:
        found = self._session.internals.registry.get(tool)
        if found is None:
            return []
        documents = self._session.internals.bridge.tabs.documents
        return [each.url for each in documents if found.listing.owner in each.plugins]


def _plain(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]
