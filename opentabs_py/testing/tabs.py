"""What the `opentabs` fixture gives: the running chain, for a test without `await`."""

from collections.abc import Mapping, Sequence
from typing import Any

from playwright.sync_api import BrowserContext, Page

from opentabs_py.core.records import CallRecord
from opentabs_py.core.tabs import Readiness
from opentabs_py.errors import BrowserError
from opentabs_py.plugin_set import PluginView
from opentabs_py.served import Listing
from opentabs_py.session import OpenTabs
from opentabs_py.testing.call import Call
from opentabs_py.testing.clock import Clock
from opentabs_py.testing.faults import FaultInjector
from opentabs_py.testing.isolation import BLANK
from opentabs_py.testing.thread import ServerThread
from opentabs_py.testing.transcript import PluginLog, Transcript

QUICK = 30.0  # s; the bound of what takes milliseconds, and on a loaded machine a few seconds


class SyncPluginView:
    """A plugin as it stands; `expect(plugin)` waits for it to be ready.

    Attributes:
        manifest: What the plugin says about itself.
    """

    def __init__(self, view: PluginView, thread: ServerThread) -> None:
        self.manifest = view.manifest
        self._view = view
        self._thread = thread

    def __repr__(self) -> str:
        return f"<SyncPluginView {self.name} {self.readiness}>"

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest.name

    @property
    def readiness(self) -> Readiness:
        """`ready` in a page, `unavailable` in those that are open, or `closed`: none is."""
        return self._thread.do(lambda: self._view.readiness)

    def let_time_pass(self, seconds: float) -> None:
        """Wait for this long, while the page's routes and events go on."""
        self._thread.sleep(seconds)


class SyncOpenTabs:
    """The running chain: the server, Chromium with the extension, and the plugins.

    Its calls wait inside Playwright, so that `page.route` handlers answer a tool's fetch.

    Attributes:
        clock: Of the timers of calls; `@pytest.mark.opentabs(clock="manual")` makes it stand still.
        faults: Plants faults on the way of calls, and does what happens to browsers.
    """

    def __init__(
        self,
        session: OpenTabs,
        context: BrowserContext,
        thread: ServerThread,
        transcript: Transcript,
        *,
        clock: Clock,
        faults: FaultInjector,
        patience: float,
    ) -> None:
        self.clock = clock
        self.faults = faults
        self._session = session
        self._context = context
        self._thread = thread
        self._transcript = transcript
        self._patience = patience

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
        """Call a tool by its MCP name, and wait until it has ended, well or not.

        The tool's arguments are a mapping, or given by name: `call("chat_search", text="tea")`.

        Raises:
            TimeoutError: The clock stands still, and the tool does not end by itself.
        """
        return self.finish(self.start(name, arguments, **more))

    def start(self, name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
        """Start a call, and give it as soon as it is on its way to its page, or has ended."""
        given = {**(arguments or {}), **more}
        running = self._thread.run(self._session.start, name, given, within=QUICK)
        call = Call(running, self._thread)
        self._transcript.calls.append(call)
        return call

    def finish(self, call: Call) -> Call:
        """Wait until a call has ended.

        Raises:
            TimeoutError: The clock stands still, and the tool does not end by itself.
        """
        try:
            return call.wait(self._patience)
        except TimeoutError:
            call.cancel()
            raise TimeoutError(
                f"{call.name} has not ended within {self._patience:g} s, and no timer will end "
                "it: the clock stands still. Start it, and advance the clock."
            ) from None

    def output_schema(self, name: str) -> Mapping[str, Any] | None:
        """Give what a tool promises of its value; None when there is no such tool, or promise."""
        return self._session.output_schema(name)

    @property
    def tools(self) -> Sequence[Listing]:
        """What is told of the tools that are served, by their names."""
        return tuple(tool.listing for tool in self._session.tools)

    @property
    def logs(self) -> Sequence[PluginLog]:
        """What plugins logged in this test, during calls and between them."""
        return tuple(self._transcript.logs)

    @property
    def trace(self) -> Sequence[CallRecord]:
        """The calls of this test that have ended, an MCP client's too: hops, timers, progress."""
        return tuple(self._transcript.records)

    @property
    def mcp_url(self) -> str:
        """Where an MCP client connects."""
        return self._session.mcp_url

    def plugin(self, name: str | None = None) -> SyncPluginView:
        """Give a plugin by its name; without one, the only one there is.

        Raises:
            LookupError: There is none of that name, or not one alone.
        """
        return SyncPluginView(self._session.plugin(name), self._thread)

    def open_start_page(self, name: str | None = None) -> Page:
        """Open the page that a plugin is tried on: its `playground/`, or else its homepage.

        Raises:
            LookupError: There is no such plugin.
            BrowserError: It has neither, or the page cannot be opened.
        """
        plugin = self.plugin(name)
        url = self._thread.run(self._session.start_page_url, plugin.name, within=QUICK)
        if url is None:
            raise BrowserError(
                f"{plugin.name} has no playground/ that its patterns take, and no homepage. "
                "Use the page fixture: page.goto(...)."
            )
        unused = [page for page in self._context.pages[1:] if page.url == BLANK]
        page = unused[-1] if unused else self._context.new_page()
        page.goto(url)
        return page
