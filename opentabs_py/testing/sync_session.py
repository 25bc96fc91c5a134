"""The `opentabs` fixture's value: the running chain, for synchronous tests."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from playwright.sync_api import BrowserContext, Page

from opentabs_py.bridge.page_tool import PageTool
from opentabs_py.calling.listing import Listing
from opentabs_py.calling.running import RunningCall
from opentabs_py.calling.tool import Tool
from opentabs_py.core.page_tool_names import pattern_of, site_of
from opentabs_py.core.plugin_names import PAGE, own_name
from opentabs_py.core.sites import match_patterns
from opentabs_py.core.text import did_you_mean, nearest
from opentabs_py.core.trace.record import CallRecord
from opentabs_py.errors import BrowserError
from opentabs_py.session.session import OpenTabs
from opentabs_py.testing.arguments import merged
from opentabs_py.testing.call import Call
from opentabs_py.testing.clock import Clock
from opentabs_py.testing.faults.injector import FaultInjector
from opentabs_py.testing.hands import SyncHands
from opentabs_py.testing.isolation import BLANK, pages_of
from opentabs_py.testing.page_tools import SyncPageTool
from opentabs_py.testing.plugin_view import SyncPluginView
from opentabs_py.testing.recordings.recording import ReplayedSite
from opentabs_py.testing.screenshots import Screenshots
from opentabs_py.testing.steps import Steps
from opentabs_py.testing.thread import ServerThread
from opentabs_py.testing.transcript import PluginLog, Transcript

__tracebackhide__ = True  # pytest then shows the line of the test, and none of these

Run = Callable[[str, Mapping[str, Any]], RunningCall]
"""Starts a call of a tool with arguments."""

_CHAIN = "_opentabs_chain"  # an attribute of a test's browser context
QUICK = 30.0  # s; for operations that take milliseconds, or a few seconds on a busy machine


class SyncTool:
    """A tool of the running chain, for `expect_contract`.

    Attributes:
        listing: The tool's public description.
        opentabs: The chain.
    """

    def __init__(self, tool: Tool, opentabs: "SyncOpenTabs", thread: ServerThread) -> None:
        self.listing = tool.listing
        self.opentabs = opentabs
        self._tool = tool
        self._thread = thread

    def __repr__(self) -> str:
        return f"<SyncTool {self.name}>"

    @property
    def name(self) -> str:
        """The tool's MCP name."""
        return self.listing.name

    @property
    def name_in_page(self) -> str:
        """The owner's name, a space, and the tool's name, as pages write to their console.

        For this package's own use.
        """
        if isinstance(self._tool, PageTool):
            return f"{PAGE} {self._tool.tool.registered.name}"
        owner = self.listing.owner
        return f"{owner} {own_name(owner, self.name)}"

    @property
    def start_page(self) -> str | None:
        """The URL of its plugin's start page; None if there is none."""
        if self.listing.is_of_page or not self.listing.needs_tab:
            return None
        return self.opentabs.start_page_url(self.listing.owner)

    @property
    def sites(self) -> Sequence[str]:
        """Match patterns of the pages that it runs in, and that it may fetch from.

        For this package's own use.
        """
        if isinstance(self._tool, PageTool):
            return [pattern_of(self._tool.tool.site)]
        if not self.listing.needs_tab:
            return ()
        return self.opentabs.plugin(self.listing.owner).manifest.url_patterns

    def runs_in(self, url: str) -> bool:
        """Return whether it runs in a page with this URL. For this package's own use."""
        if isinstance(self._tool, PageTool):
            return site_of(url) == self._tool.tool.site
        if not self.listing.needs_tab:
            return False
        manifest = self.opentabs.plugin(self.listing.owner).manifest
        return match_patterns.serves(url, manifest.url_patterns, manifest.exclude_patterns)

    def page_answers(self, page: Page, within: float) -> bool:
        """Return whether a page runs scripts; its events so far have then been dispatched.

        For this package's own use.
        """
        return self._thread.answers(page, within)


class SyncOpenTabs:
    """The running chain: the server, Chromium with the extension, and the plugins.

    Its calls wait inside Playwright, so that `page.route` handlers can answer a tool's requests.

    Attributes:
        clock: Drives the timers of calls; `@pytest.mark.opentabs(clock="manual")` stops it.
        faults: Injects faults into a call's messages and into the browser.
        browsers: All browsers of this test by name, if its mark names them.
        context: Playwright's browser context.
    """

    browsers: "Mapping[str, SyncOpenTabs]"

    def __init__(
        self,
        session: OpenTabs,
        context: BrowserContext,
        thread: ServerThread,
        transcript: Transcript,
        *,
        clock: Clock,
        faults: FaultInjector,
        steps: Steps,
        screenshots: Screenshots,
        patience: float,
    ) -> None:
        self._screenshots = screenshots
        self._steps = steps
        self.clock = clock
        self.faults = faults
        self._session = session
        self.context = context
        self._thread = thread
        self._transcript = transcript
        self._patience = patience
        self._recording: ReplayedSite | None = None
        setattr(context, _CHAIN, self)

    def __repr__(self) -> str:
        return f"<SyncOpenTabs {self.mcp_url}>"

    @property
    def recording(self) -> ReplayedSite:
        """The recording that the test's mark names: its URL, and the recorded calls.

        Raises:
            LookupError: The mark names none.
        """
        if self._recording is None:
            raise LookupError(
                'This test has no recording. Name it: @pytest.mark.opentabs(recording="site.har").'
            )
        return self._recording

    def set_recording(self, recording: ReplayedSite) -> None:
        """Set what the test can read of its recording. For this package's own use."""
        self._recording = recording

    @property
    def page(self) -> Page:
        """The browser's first page in this test, as the `page` fixture; opened if there is none."""
        own = pages_of(self.context)
        return own[0] if own else self.context.new_page()

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
        """Call a tool by its MCP name, wait until it has ended, and return its value.

        Pass the tool's arguments as a mapping or as keywords: `call("chat_search", text="tea")`.

        Raises:
            CallError: The call failed; `error.detail` says why.
            TimeoutError: The clock stands still, and the tool does not end by itself.
            TypeError: An argument is given twice, or the mapping is not one.
        """
        return self.call_as("call", name, merged(arguments, more), self._run)

    def start(self, name: str, arguments: Mapping[str, Any] | None = None, /, **more: Any) -> Call:
        """Start a call, and return it once its tool has started, or the call has ended.

        If the page is too busy to start the tool within a second, or faults are injected, return
        the call once it has been sent. Use `expect(call)` to check how it ends.
        """
        return self.start_as("start", name, merged(arguments, more), self._run)

    def call_as(self, what: str, name: str, given: Mapping[str, Any], run: Run) -> Any:
        """Make a call, wait until it has ended, and return its value.

        For this package's own use.

        Args:
            what: What the test does, for Playwright's trace.
            name: The tool's MCP name.
            given: Its arguments.
            run: Starts the call.
        """
        with self._steps.step(what, name, given) as show_end:
            call = self._start(name, given, run)
            try:
                return self._finish(call).value
            finally:
                show_end(call)

    def start_as(self, what: str, name: str, given: Mapping[str, Any], run: Run) -> Call:
        """Start a call; see `call_as`. For this package's own use."""
        with self._steps.step(what, name, given):
            call = self._start(name, given, run)
            if not self.faults.are_injected:  # the test may be about what comes before the start
                call.wait_begun()
            return call

    def _start(self, name: str, given: Mapping[str, Any], run: Run) -> Call:
        self._screenshots.before(name)
        self._thread.catch_up(self.context)
        call = Call(run(name, given), self._thread, self._screenshots.after)
        self._transcript.calls.append(call)
        return call

    def _run(self, name: str, given: Mapping[str, Any]) -> RunningCall:
        return self._thread.run(self._session.start, name, given, within=QUICK)

    def _finish(self, call: Call) -> Call:
        try:
            return call.wait(self._patience)
        except TimeoutError:
            call.cancel()
            raise TimeoutError(
                f"{call.name} has not ended within {self._patience:g} s, and no timer will end it, "
                "because the clock stands still. Use start() instead, and advance the clock."
            ) from None

    def output_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a tool's output schema; None if there is no such tool, or it has none."""
        return self._session.output_schema(name)

    def tool(self, name: str) -> SyncTool:
        """Return a tool by its MCP name, for `expect_contract`.

        Raises:
            LookupError: There is no such tool.
        """
        tools = {each.listing.name: each for each in self._session.internals.registry.tools}
        if name not in tools:
            hint = did_you_mean(nearest(name, tools)) or f"there are: {', '.join(tools)}."
            raise LookupError(f"There is no tool {name!r}; {hint}")
        return SyncTool(tools[name], self, self._thread)

    def page_tools(self, page: Page) -> Sequence[SyncPageTool]:
        """Return the tools that a page has registered itself, once it has loaded.

        Raises:
            ConfigError: The setting `webmcp` names no pages.
            LookupError: It does not name this page, or several pages show the same URL.
        """
        webmcp = self._session.settings.webmcp
        if webmcp and not any(match_patterns.parse(each).matches(page.url) for each in webmcp):
            raise LookupError(f"{page.url} does not match webmcp = {[*webmcp]} in the settings.")
        tab_id, tools = self._thread.run(
            self._session.internals.page_tools.wait_for, page.url, within=QUICK
        )
        return tuple(SyncPageTool(tool, tab_id, self) for tool in tools)

    @cached_property
    def hands(self) -> SyncHands:
        """The tools that read and operate any page, with `hands = true` in the settings."""
        return SyncHands(self, self._session, self._thread)

    def sleep(self, seconds: float) -> None:
        """Wait for this long; page routes and events keep working."""
        self._thread.sleep(seconds)

    def checkpoint(self) -> Callable[[], None]:
        """Return a function that removes from the report everything since this call.

        For this package's own use.
        """
        return self._transcript.checkpoint()

    @property
    def tools(self) -> Sequence[Listing]:
        """The listings of the tools that are served, sorted by name."""
        return tuple(self._session.tools)

    @property
    def logs(self) -> Sequence[PluginLog]:
        """What plugins logged during this test, in calls and between them."""
        return tuple(self._transcript.logs)

    @property
    def trace(self) -> Sequence[CallRecord]:
        """This test's completed calls, including an MCP client's: hops, timers, progress."""
        return tuple(self._transcript.records)

    @property
    def mcp_url(self) -> str:
        """The URL for MCP clients."""
        return self._session.mcp_url

    def plugin(self, name: str | None = None) -> SyncPluginView:
        """Return a plugin by name; without a name, the only plugin.

        Raises:
            LookupError: There is no such plugin, or, without a name, there is not exactly one.
        """
        try:
            view = self._session.plugin(name)
        except LookupError as error:
            raise error.with_traceback(None) from None  # pytest would show our frames
        return SyncPluginView(view, self._thread)

    def open_start_page(self, plugin: str | None = None) -> Page:
        """Open a plugin's start page: its `playground/`, or else its homepage.

        Args:
            plugin: The plugin's name; not needed if there is only one.

        Raises:
            LookupError: There is no such plugin.
            BrowserError: It has neither, or the page cannot be opened.
        """
        url = self.start_page_url(plugin)
        if url is None:
            raise BrowserError(
                f"{self.plugin(plugin).name} has no playground/ that its patterns match, and no "
                "homepage. Open a page of its site: page.goto(url)."
            )
        unused = [page for page in pages_of(self.context) if page.url == BLANK]
        page = unused[-1] if unused else self.context.new_page()
        page.goto(url)
        return page

    def start_page_url(self, plugin: str | None = None) -> str | None:
        """Return the URL that `open_start_page` opens; None if the plugin has no start page.

        Raises:
            LookupError: There is no such plugin.
        """
        name = self.plugin(plugin).name
        return self._thread.run(self._session.start_page_url, name, within=QUICK)


def chain_of(page: Page) -> SyncOpenTabs:
    """Return the chain of a page's browser.

    Raises:
        TypeError: It is not a browser with the extension.
    """
    chain: SyncOpenTabs | None = getattr(page.context, _CHAIN, None)
    if chain is None:
        raise TypeError(
            "This page is not in the browser of the `opentabs` fixture, so its tools are unknown. "
            "Use the fixture `page`."
        )
    return chain
