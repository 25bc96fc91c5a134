"""A server, a browser and plugins as one: the library's front door.

Importing it loads little. Playwright's driver takes a third of a second to start, in its own
process, and loading the rest of a session takes as long, so both happen in parallel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import anyio
import anyio.to_thread
from playwright.async_api import BrowserContext, Page

from opentabs_py.calling.clock import AlarmClock
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.paths import absolute
from opentabs_py.errors import BrowserError, ConfigError
from opentabs_py.session.arguments import check_list
from opentabs_py.session.browsers.source import BrowserSource
from opentabs_py.session.own_task import OwnTask
from opentabs_py.session.seams import Seams
from opentabs_py.session.tools.python_tool_set import PythonToolSet

if TYPE_CHECKING:
    from mcp.server import Server as McpServer
    from mcp.types import CallToolResult

    from opentabs_py.browser.discovery import Attach
    from opentabs_py.calling.listing import Listing
    from opentabs_py.calling.running import RunningCall
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.limits import Limits
    from opentabs_py.core.progress import ProgressReport
    from opentabs_py.core.trace.record import CallRecord
    from opentabs_py.plugins.plugin import PluginChanges, SkippedPlugin
    from opentabs_py.python_tools.handlers import Handler, ProgressHandlers
    from opentabs_py.session.browsers.browser import SessionBrowser
    from opentabs_py.session.browsers.view import BrowserView
    from opentabs_py.session.plugins.view import PluginView
    from opentabs_py.session.server import SessionServer

logger = logging.getLogger(__name__)

_SET_IN_CONTEXT: Final = ("mcp_url", "extension_dir", "_server", "_browsers")


class OpenTabs:
    """A running chain: MCP server, Chromium with the extension, plugins.

        async with OpenTabs(plugins=["my-plugin"]) as tabs:
            await tabs.open("https://example.com/")
            value = await tabs.call("my_plugin_tool", {"query": "x"})

    Leaving the context stops the browser and the server and removes every temporary file.

    Args:
        tools: Tools written in Python: functions, methods of objects, and `Module`s.
        plugins: Directories of built plugins, in addition to those in the settings.
        browser: `launch` starts a Chromium; `none` waits for an extension that the user has
            loaded by hand, from `extension_dir`. `Attach` loads it into a browser that is running,
            once its user allows it. With Python tools and without plugins, no browser is started.
        browsers: Several browsers to launch instead of one: the profile directory of each, by name.
            Or a number of equal ones with new profiles: the next call goes to the one with the
            fewest.
        nats: The fleet whose workers' tools to serve, instead of a browser's: the address of its
            NATS server, or `FleetOptions`. See docs/fleet.md.
        settings: Where to listen, what to launch, how long calls may take.
        read_settings: Reads the settings again when plugins are reloaded: the list of plugins and
            their settings may change while the session runs.
        args: More command-line switches for Chromium.
        ignore_default_args: Playwright switches to leave out.
        relaunch_urls: If a call needs the browser after it was closed or has died, relaunch it and
            open these pages in it. None: such calls fail.
        trace: A file to write every call to; `opentabs trace show` reads it.
        while_launching: Called once the browsers have what they need to start. Until they have
            started, the session only waits, so this is the time to load what is needed later.

    Attributes:
        mcp_url: The URL that MCP clients connect to; set in the context, like the others.
        extension_dir: The extension that connects to this session: with `browser="none"`, the
            directory to load by hand.
    """

    mcp_url: str
    extension_dir: Path

    def __init__(
        self,
        *,
        tools: Sequence[Any] = (),
        plugins: Sequence[str | Path] = (),
        browser: Literal["launch", "none"] | Attach = "launch",
        browsers: Mapping[str, str | Path] | int | None = None,
        nats: str | FleetOptions | None = None,
        settings: Settings | None = None,
        read_settings: Callable[[], Settings] | None = None,
        args: Sequence[str] = (),
        ignore_default_args: Sequence[str] = (),
        relaunch_urls: Sequence[str] | None = None,
        trace: Path | None = None,
        while_launching: Callable[[], None] = lambda: None,
        _seams: Seams | None = None,
    ) -> None:
        check_list("tools", tools)
        check_list("plugins", plugins)
        check_list("args", args)
        check_list("ignore_default_args", ignore_default_args)
        check_list("relaunch_urls", relaunch_urls)
        if nats is not None and (plugins or browsers or browser != "launch"):
            raise ConfigError(
                "An endpoint of a fleet has no plugins and no browsers; its workers have them. "
                "Leave them out, or leave out nats."
            )
        self._settings = settings
        self._read_settings = read_settings
        self._directories = [absolute(Path(each)) for each in plugins]
        self._has_tools = bool(tools)
        self._seams = _seams or Seams()
        self._source = BrowserSource(
            browser,
            browsers,
            launch=self._seams.launch,
            relaunch_urls=relaunch_urls,
            is_needed=self._tools_need_browser,
        )
        self._fleet = FleetOptions(nats) if isinstance(nats, str) else nats
        self._args = args
        self._ignore_default_args = ignore_default_args
        self._clock = AlarmClock(self._seams.clock)
        self._trace = trace
        self._while_launching = while_launching
        self._python = PythonToolSet(
            tools, lambda: self.settings, self._clock, stream_prefix=self._seams.stream_prefix
        )
        self._own_task: OwnTask | None = None
        self._keeps_records = False
        self._is_open = False
        self._has_ended = False
        self._browsers: list[SessionBrowser]  # both set in the context
        self._server: SessionServer

    if not TYPE_CHECKING:  # to a type checker, any name would be valid

        def __getattr__(self, name: str) -> Any:
            if name in _SET_IN_CONTEXT:
                raise self._not_running()
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    async def __aenter__(self) -> Self:
        """Start everything; with a browser, wait until its extension is connected.

        Raises:
            BrowserError: No Chromium, or it did not start or connect.
            ConfigError: The port is not available, or a setting names a plugin that does not
                exist.
        """
        if self._own_task is not None:
            raise RuntimeError(
                "This session is already running. For another one, create another OpenTabs."
            )
        self._own_task = OwnTask(self._start)
        try:
            await self._own_task.begin()
        except BaseException:
            self._unset()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop everything, in reverse order."""
        if self._own_task is None:
            raise self._not_running()
        self._is_open = False
        for browser in self._browsers:
            browser.keep_closed()  # the last calls must not launch it
            self._own_task.stack.push_async_callback(browser.detach)
        try:
            await self._own_task.end()
        finally:
            self._has_ended = True
            self._unset()

    def _unset(self) -> None:
        self._own_task = None
        for name in _SET_IN_CONTEXT:
            self.__dict__.pop(name, None)

    def _not_running(self) -> RuntimeError:
        what = "session has ended" if self._has_ended else "server is not running"
        return RuntimeError(
            f"The {what}. Use it within its context: async with OpenTabs(...) as tabs."
        )

    @cached_property
    def settings(self) -> Settings:
        """The settings of the session.

        Raises:
            ConfigError: A value is not valid.
        """
        from opentabs_py.config.settings import load_settings

        return self._settings or load_settings()

    @property
    def on_tool_progress(self) -> ProgressHandlers:
        """The application's progress handlers: assign one, or call this to add several.

        A handler is called with the tool's name, the call's id and the reported data, and by
        name with those of `seq`, `message`, `progress`, `total` and `kind` that it accepts.
        """
        return self._python.handlers

    @on_tool_progress.setter
    def on_tool_progress(self, handler: Handler | None) -> None:
        self.on_tool_progress.assign(handler)

    @property
    def needs_browser(self) -> bool:
        """Whether there is anything for a browser to do; with Python tools alone there is not.

        For this package's own use.
        """
        return self._fleet is None and self._source.is_used

    def _tools_need_browser(self) -> bool:
        # The settings last: usually they need not be loaded to decide this.
        return self._fleet is None and (
            bool(self._directories) or not self._has_tools or self.settings.may_need_browser
        )

    @property
    def browsers(self) -> Mapping[str, BrowserView]:
        """The browsers of this session, by name; if only one is launched, it is named `default`."""
        if self.is_endpoint:
            return {}
        return {browser.bridge.name: browser for browser in self._browsers}

    @property
    def browser(self) -> BrowserView:
        """The browser, or the first of several.

        Raises:
            BrowserError: This session has none.
        """
        if self.is_endpoint:
            raise BrowserError(
                "An endpoint of a fleet has no browser; its workers have them. To open a page in "
                "one, call the tool tabs_open."
            )
        return self._browsers[0]

    def check_driver(self) -> None:
        """Raise if Playwright's driver has died, and with it the browsers of this session.

        Raises:
            BrowserError: It has died.
        """
        self._source.driver.check()

    @property
    def context(self) -> BrowserContext:
        """Playwright's browser context; its pages are the (first) browser's tabs.

        Raises:
            BrowserError: This session did not launch a browser.
        """
        return self.browser.context

    @property
    def is_endpoint(self) -> bool:
        """Whether the tools of a fleet's workers are served.

        For this package's own use.
        """
        return self._fleet is not None

    @property
    def internals(self) -> SessionServer:
        """The parts of the session. For this package's own use."""
        return self._server

    def console_url(self, *, expires: bool = True, for_own_user: bool = False) -> str:
        """Return a URL that opens the console, a web page that shows this session live.

        It lets one browser in, once. From the first URL on, calls and logs are remembered.

        Args:
            expires: Whether it has to be opened within ten minutes.
            for_own_user: Whether it opens for no other user of this machine; on Linux only, and
                everywhere else it opens for whoever has it.
        """
        self._server.keep_history()
        access = self._server.console.access
        token = access.invite(expires=expires, for_own_user=for_own_user)
        return f"{self.mcp_url.removesuffix('/mcp')}/?token={token}"

    @property
    def guide_url(self) -> str | None:
        """The page that shows how to load the extension, if `browser="none"`; else None."""
        return self._server.guide_url

    @property
    def mcp_server(self) -> McpServer[Any]:
        """The MCP server, for transports other than HTTP."""
        return self._server.mcp_servers.server

    @property
    def tools(self) -> Sequence[Listing]:
        """The tools that are served."""
        return [tool.listing for tool in self._server.registry.tools]

    def output_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a tool's output schema; None if there is no such tool, or it has none."""
        tool = self._server.registry.get(name)
        return None if tool is None else tool.listing.output_schema

    @property
    def plugins(self) -> Sequence[PluginView]:
        """The plugins that are served."""
        return self._server.plugin_set.views

    @property
    def skipped_plugins(self) -> Sequence[SkippedPlugin]:
        """Plugins that cannot be served, and why."""
        return self._server.plugin_set.skipped

    def plugin(self, name: str | None = None) -> PluginView:
        """Return a plugin by name; without a name, the only one.

        Raises:
            LookupError: There is no such plugin; or, without a name, not exactly one.
        """
        if self.is_endpoint:
            raise LookupError(
                "An endpoint of a fleet has no plugins; its workers have them. Call their tools, "
                "and see `opentabs fleet status` for where they are ready."
            )
        return self._server.plugin_set.view(name)

    async def open(self, url: str) -> Page:
        """Open a page in a new tab of the (first) browser and wait for it to load.

        Args:
            url: With or without its scheme, as users type it.

        Raises:
            BrowserError: The page cannot be opened.
        """
        return await self.browser.open(url)

    async def open_start_page(self, plugin: str | None = None) -> Page:
        """Open a plugin's start page: its `playground/`, or else its homepage.

        This session serves the playground, if the plugin matches pages on this machine.

        Args:
            plugin: The plugin's name; not needed if there is only one.

        Raises:
            LookupError: There is no such plugin.
            BrowserError: It has neither, or the page cannot be opened.
        """
        url = await self.start_page_url(plugin)
        if url is None:
            raise BrowserError(
                f"{self.plugin(plugin).name} has no playground/ that its patterns match, and no "
                "homepage. Open a page of its site: open(url)."
            )
        return await self.open(url)

    async def start_page_url(self, plugin: str | None = None) -> str | None:
        """Return the URL that `open_start_page` opens; None if the plugin has no start page.

        Raises:
            LookupError: There is no such plugin.
        """
        return await self._server.start_page_url(self.plugin(plugin).name)

    def observe(
        self, observer: Callable[[CallRecord], None], *, traced: bool = True
    ) -> Callable[[], None]:
        """Call a function with the record of every call that ends from now on, however it ends.

        It is called before the caller gets the result, in the caller's task, and must not block.

        Args:
            observer: Receives each record.
            traced: Whether the records should say when the call passed each hop, what it reported,
                and what its plugin logged. That costs each call some time.

        Returns:
            A function that ends the observation.
        """
        return self._server.tool_calls.records.observe(observer, traced=traced)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[ProgressReport], object] | None = None,
    ) -> Any:
        """Call a tool and return its value, without an MCP client.

        Cancelling this coroutine cancels the call, and notifies the tool.

        Args:
            name: The tool's MCP name, as in `tools/list`.
            arguments: They must match the tool's input schema; `tabId` chooses a tab.
            limits: Time limits to use instead of the tool's, in seconds.
            on_progress: Called with each report, in order; must not block. Its first error is
                logged.

        Returns:
            A JSON value; of a tool written in Python, perhaps an `Output` with other content.

        Raises:
            CallRefusedError: There is no such tool, the arguments do not match its schema or are
                too large, or the user does not allow the call.
            CallTimeoutError: No progress for `limits.idle` seconds, or no result after
                `limits.ceiling`.
            ChainError: There is no browser or no tab, or the page went away.
            ToolFailedError: The tool threw; its error's fields are in `detail`.
            RuntimeError: The server is not running.
        """
        from opentabs_py.calling.observer import progress_observers

        observers = progress_observers(on_progress)
        calls = self._server.tool_calls
        return await calls.call(name, arguments or {}, limits=limits, observers=observers)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[ProgressReport], object] | None = None,
        call_id: str | None = None,
    ) -> CallToolResult:
        """Call a tool by its MCP name, and return its result as MCP clients receive it.

        If all tools are written in Python, this also works outside the context.

        Args:
            name: As in `tools/list`.
            arguments: They must match the tool's schema.
            limits: Time limits to use instead of the tool's, in seconds.
            on_progress: Called with each report, in order; must not block. Its first error is
                logged.
            call_id: The call's id, as progress handlers receive it; a new one by default.

        Raises:
            RuntimeError: There are plugins, or a fleet, but the server is not running.
        """
        from opentabs_py.calling.observer import progress_observers
        from opentabs_py.server.mcp.results import result_of

        if not self._is_open and (self.needs_browser or self.is_endpoint):
            raise self._not_running()
        is_open, python = self._is_open, self._python
        ours = nullcontext(self._server.tool_calls) if is_open else python.without_pages()
        async with ours as calls:
            observers = progress_observers(on_progress)
            call = calls.call(
                name, arguments or {}, limits=limits, observers=observers, call_id=call_id
            )
            result = await result_of(call, name, with_stack=calls.debug)
        await self._python.handlers.flush()
        return result

    async def start(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
    ) -> RunningCall:
        """Start a call; return it once it has been sent to its page, or has ended before that.

        The arguments are those of `call`. An error that `call` would raise is the `error` of the
        call that this returns. The call holds its own outcome, including its `record`: from the
        first started call on, this session's calls are traced. Leaving the session cancels the
        call, and so does cancelling this coroutine.
        """
        from opentabs_py.calling.running import RunningCall, keep_record, keep_start

        if not self._keeps_records:
            self._keeps_records = True
            self._server.tool_calls.records.observe(keep_record, on_start=keep_start)
        call = RunningCall(name, arguments or {}, output_schema=self.output_schema(name))
        self._server.tasks.start_soon(call.run, self._server.tool_calls, limits)
        try:
            await call.wait_sent()
        except BaseException:
            call.cancel()  # the caller was cancelled, so nobody else can
            raise
        return call

    async def reload_plugins(self) -> PluginChanges:
        """Load all plugins again, and serve their current versions.

        In open documents a new adapter replaces the old one, which is torn down first; calls
        running in the old one continue. MCP clients are notified if the tool list changes. A
        plugin that has become invalid stays in service unchanged, and the problem is logged.
        """
        return await self._server.plugin_set.reload()

    async def page_tools(self, url: str) -> tuple[int, Sequence[Listing]]:
        """Return the tools that a page has registered itself, once it has loaded, and its tab.

        Args:
            url: The page's URL, with its fragment.

        Raises:
            ConfigError: The setting `webmcp` names no pages.
            LookupError: Several tabs show that URL.
        """
        tab_id, tools = await self._server.page_tools.wait_for(url)
        return tab_id, [tool.listing for tool in tools]

    def replace_tools(self, tools: Sequence[Any]) -> None:
        """Serve these tools written in Python instead of those that were given before.

        Calls that run in the old ones continue; streams of their modules end. MCP clients are
        notified if the tool list changes.

        Raises:
            ConfigError: Something cannot be served; the old tools are still there.
        """
        self._python.replace(tools, self._server.tool_calls)

    async def watch_plugins(self) -> None:
        """Reload the plugins whenever they or the settings files change, until cancelled."""
        await self._server.plugin_set.watch()

    async def _start(self, stack: AsyncExitStack) -> None:
        self._browsers = await self._source.begin(stack)
        # Not abandoned when cancelled: if the interpreter exits while a thread imports a C++
        # module, it aborts.
        await anyio.to_thread.run_sync(import_module, "opentabs_py.session.server")
        from opentabs_py.session.browsers.setup import BrowserPlan
        from opentabs_py.session.server import SessionServer

        options = BrowserPlan(
            profiles=self._source.profiles,
            args=self._args,
            ignore_default_args=self._ignore_default_args,
            by_hand=self._source.is_loaded_by_hand,
            attach=self._source.attach,
            interchangeable=self._source.are_interchangeable,
        )
        server = self._server = SessionServer(
            self.settings,
            options,
            directories=self._directories,
            read_settings=self._read_settings,
            python=self._python,
            clock=self._clock,
            trace=self._trace,
            seams=self._seams,
            fleet=self._fleet,
            browsers=self._browsers,
        )
        await server.start(stack, while_launching=self._while_launching)
        self.mcp_url, self.extension_dir = server.mcp_url, server.extension_dir
        for browser in self._browsers:
            await browser.start(server.tasks, self.extension_dir, server.pages)
        self._is_open, self._has_ended, self._keeps_records = True, False, False


Server = OpenTabs
"""The same class, under a name that suits a server of Python tools."""
