"""A server, a browser and plugins as one: the library's front door."""

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
from anyio.abc import TaskGroup
from playwright.async_api import BrowserContext, Error, Page

from opentabs_py import __version__
from opentabs_py.bridge import Bridge
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.launch import BackgroundLaunch, Launcher, LaunchPlan, launch_browser
from opentabs_py.browser.stage import (
    StagedExtension,
    kept_secret,
    stage_extension,
    temporary_dir,
)
from opentabs_py.calls import RunningCall, keep_record
from opentabs_py.clock import AlarmClock, Clock
from opentabs_py.config import Settings, data_dir, load_settings
from opentabs_py.connection import Socket
from opentabs_py.core.dispatch import Limits
from opentabs_py.core.match import parse as parse_match_pattern
from opentabs_py.core.progress import ProgressReport
from opentabs_py.errors import BrowserError
from opentabs_py.plugin_set import PluginSet, PluginView
from opentabs_py.plugins.load import Plugin, PluginChanges, Quarantined, playground
from opentabs_py.served import ServedTool
from opentabs_py.server.listen import bind
from opentabs_py.server.toolbox import Toolbox
from opentabs_py.tools.observers import Event, Handler, Observers
from opentabs_py.tools.progress import Told
from opentabs_py.tracing.file import TraceWriter

if TYPE_CHECKING:
    from mcp.server import Server as McpServer
    from mcp.types import CallToolResult

    from opentabs_py.server.mcp_side import McpSide
    from opentabs_py.tools.collection import PythonTools

logger = logging.getLogger(__name__)

CONNECT_WITHIN = 20.0  # s; half a second is usual, a loaded machine takes several


class OpenTabs:
    """A running chain: MCP server, Chromium with the extension, plugins.

        async with OpenTabs(plugins=["my-plugin"]) as tabs:
            await tabs.open("https://example.com/")
            value = await tabs.call("my_plugin_tool", {"query": "x"})

    Leaving the context stops the browser and the server and removes every temporary file.

    Args:
        tools: Tools written in Python: functions, methods of objects, and `Module`s.
        plugins: Directories of built plugins, besides those of the settings.
        browser: `launch` starts a Chromium; `none` waits for an extension that the user has
            loaded by hand, from `extension_dir`. A `Launcher` starts one in its own way. With
            tools in Python and without plugins there is no browser.
        settings: Where to listen, what to launch, how long calls may take.
        args: More command-line switches for Chromium.
        ignore_default_args: Switches of Playwright's to leave out.
        clock: What the timers of calls run on; time itself when not given.
        trace: A file that every call is written to; `opentabs trace show` reads it.
        relay_script: Runs in the relay's world, where tests plant faults.
        wrap_socket: Is given the extension's sockets, where tests plant others.
    """

    settings: Settings
    bridge: Bridge
    toolbox: Toolbox
    mcp_url: str
    extension_dir: Path

    def __init__(
        self,
        *,
        tools: Sequence[Any] = (),
        plugins: Sequence[str | Path] = (),
        browser: Literal["launch", "none"] | Launcher = "launch",
        settings: Settings | None = None,
        args: Sequence[str] = (),
        ignore_default_args: Sequence[str] = (),
        clock: Clock | None = None,
        trace: Path | None = None,
        relay_script: bytes = b"",
        wrap_socket: Callable[[Socket], Socket] = lambda socket: socket,
    ) -> None:
        self.settings = settings or load_settings()
        self._directories = [*map(Path, plugins), *self.settings.plugins]
        self._launcher: Launcher | None
        # There are no pages to be seen to.
        self._has_pages = callable(browser) or bool(self._directories) or not tools
        if callable(browser):
            self._launcher = browser
        else:
            launches = browser == "launch" and self._has_pages
            self._launcher = launch_browser if launches else None
        self._args = args
        self._relay_script = relay_script
        self._wrap_socket = wrap_socket
        self._trace = trace
        self._ignore_default_args = ignore_default_args
        self._clock = AlarmClock(clock)
        self._observers = Observers()
        self._python = self._make_tools(tools) if tools else None
        self._stack = AsyncExitStack()
        self._context: BrowserContext | None = None
        self._browser_gone = anyio.Event()
        self._playgrounds: dict[Path, str] = {}
        self._keeps_records = False
        self._observes_pages = self._is_open = False
        self._tasks: TaskGroup
        self._plugins: PluginSet
        self._mcp_side: McpSide

    async def __aenter__(self) -> Self:
        """Start everything; with a browser, wait until its extension is connected.

        Raises:
            BrowserError: No Chromium, or it did not start or connect.
            ConfigError: The port cannot be had, or a setting is given to no plugin.
        """
        try:
            await self._start(self._stack)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop everything, in reverse order."""
        # Not handed on: our task groups would wrap the caller's error in an ExceptionGroup.
        await self._stack.aclose()

    @property
    def on_tool_progress(self) -> Observers:
        """The application's handlers of progress: assign one, or call this with several.

        A handler is called with the tool's name, the id of the call and what the tool told, and
        by name with those of `seq`, `message`, `progress`, `total` and `kind` that it takes.
        """
        self._observes_pages = True
        if self._is_open:
            self.toolbox.on_page_report = self._tell_page_reports
        return self._observers

    @on_tool_progress.setter
    def on_tool_progress(self, handler: Handler | None) -> None:
        self.on_tool_progress.assign(handler)

    @property
    def has_pages(self) -> bool:
        """Whether a browser has anything to do here; for tools in Python alone it has not."""
        return self._has_pages

    @property
    def context(self) -> BrowserContext:
        """Playwright's browser context; its pages are the browser's tabs.

        Raises:
            BrowserError: This session has no browser of its own.
        """
        if self._context is None:
            raise BrowserError("This session drives no browser; open pages in your own.")
        return self._context

    @property
    def mcp_server(self) -> "McpServer[Any]":
        """The MCP server, for transports besides HTTP."""
        return self._mcp_side.server

    @property
    def tools(self) -> Sequence[ServedTool]:
        """The tools that are served."""
        return self.toolbox.tools

    def output_schema(self, name: str) -> Mapping[str, Any] | None:
        """Give what a tool promises of its value; None when there is no such tool, or promise."""
        tool = next((tool for tool in self.tools if tool.listing.name == name), None)
        return None if tool is None else tool.listing.output_schema

    @property
    def plugins(self) -> Sequence[Plugin]:
        """The plugins that are served."""
        return self._plugins.plugins

    @property
    def quarantined(self) -> Sequence[Quarantined]:
        """The plugins that are faulty, and why."""
        return self._plugins.quarantined

    def plugin(self, name: str | None = None) -> PluginView:
        """Give a plugin by its name; without one, the only one there is.

        Raises:
            LookupError: There is none of that name, or not one alone.
        """
        return self._plugins.view(name)

    @property
    def browser_is_gone(self) -> bool:
        """Whether the browser was closed or died while the session ran."""
        return self._browser_gone.is_set()

    async def wait_browser_gone(self) -> None:
        """Wait until the browser was closed or died."""
        await self._browser_gone.wait()

    def take_browser_gone(self) -> None:
        """The browser was closed or died; for a launcher that gave no context to see it by."""
        self.bridge.take_browser_gone()
        self._browser_gone.set()

    async def open(self, url: str) -> Page:
        """Open a page in a new tab and wait for it to load.

        Raises:
            BrowserError: The page cannot be opened.
        """
        blank = [page for page in self.context.pages if page.url == "about:blank"]
        try:
            page = blank[0] if blank else await self.context.new_page()
            await page.goto(url)
        except Error as error:
            reason = error.message.splitlines()[0]
            raise BrowserError(f"{url} cannot be opened: {reason}. Check the address.") from error
        return page

    async def open_start_page(self, plugin: str) -> Page | None:
        """Open the page that a plugin is tried on: its `playground/`, or else its homepage.

        The playground is served by this session, if the plugin is for pages of this machine.

        Returns:
            The page, or None when the plugin has neither.

        Raises:
            BrowserError: The page cannot be opened, or there is no such plugin.
        """
        url = await self.start_page_url(plugin)
        return None if url is None else await self.open(url)

    async def start_page_url(self, plugin: str) -> str | None:
        """Give the address of the page that `open_start_page` opens.

        Raises:
            BrowserError: There is no such plugin.
        """
        found = self._plugins.find(plugin)
        if found is None:
            raise BrowserError(f"There is no plugin {plugin!r} whose page could be opened.")
        return await self._playground(found) or found.manifest.homepage

    async def _playground(self, plugin: Plugin) -> str | None:
        directory = playground(plugin.directory)
        # Any port will do: patterns that name none take all.
        patterns = [parse_match_pattern(each) for each in plugin.manifest.url_patterns]
        if directory is None or not any(each.matches("http://127.0.0.1/") for each in patterns):
            return None
        if plugin.directory not in self._playgrounds:
            from opentabs_py.server.http import serve_directory  # noqa: PLC0415

            listener = bind("127.0.0.1", 0)
            # In a task of the session's: who asks for the page may do so in any.
            await self._tasks.start(serve_directory, directory, listener)
            port = listener.getsockname()[1]
            self._playgrounds[plugin.directory] = f"http://127.0.0.1:{port}/"
        return self._playgrounds[plugin.directory]

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
    ) -> Any:
        """Call a tool by its MCP name, without an MCP client; see `Toolbox.call`."""
        return await self.toolbox.call(
            name, arguments or {}, limits=limits, on_progress=on_progress
        )

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
        call_id: str | None = None,
    ) -> "CallToolResult":
        """Call a tool by its MCP name, and give its result as an MCP client is given it.

        Where all tools are written in Python, this works outside of the context too.

        Args:
            name: As `tools/list` names it.
            arguments: What its schema asks for.
            limits: Other timers than the tool's.
            on_progress: Is given each batch of reports, in order; must not block or raise.
            call_id: The call's id, as handlers of progress are given it; one is made if not given.

        Raises:
            RuntimeError: There are plugins, and the server does not run.
        """
        from opentabs_py.server.mcp import run_tool  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            if not self._is_open:
                if self._has_pages:
                    raise RuntimeError("Enter the server first: async with Server(...) as server.")
                self.toolbox = self._make_toolbox()
                tasks = await stack.enter_async_context(anyio.create_task_group())
                stack.callback(tasks.cancel_scope.cancel)
                tasks.start_soon(self._clock.run)
            result = await run_tool(
                self.toolbox,
                name,
                arguments or {},
                limits=limits,
                on_progress=on_progress,
                call_id=call_id,
            )
        await self._observers.settle()
        return result

    async def start(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
    ) -> RunningCall:
        """Start a call, and give it once it was sent to its page or has ended before.

        Whatever it ends with is in the call, its `record` too: from the first call that is
        started, this session's calls are traced. Leaving the session cancels it.
        """
        if not self._keeps_records:
            self._keeps_records = True
            self.toolbox.observe(keep_record)
        call = RunningCall(name, arguments or {}, output_schema=self.output_schema(name))
        self._tasks.start_soon(call.run, self.toolbox, limits)
        await call.wait_sent()
        return call

    async def reload_plugins(self) -> PluginChanges:
        """Read all plugins again, and serve them as they are now.

        In open documents a new adapter takes the place of the old, which is torn down first;
        calls under way in the old one go on. MCP clients are told when the list of tools is
        another. A plugin that has become faulty is served on as it was, and the fault is logged.
        """
        return await self._plugins.reload()

    async def watch_plugins(self) -> None:
        """Reload the plugins whenever their files change, until cancelled."""
        await self._plugins.watch()

    async def _start(self, stack: AsyncExitStack) -> None:
        settings = self.settings
        chromium = configured_chromium(settings) if self._launcher is not None else None
        self._plugins = PluginSet(self._directories, settings.settings, to_debug=settings.headed)
        listener = bind(settings.host, settings.port)
        stack.callback(listener.close)
        port = listener.getsockname()[1]
        self.mcp_url = f"http://{settings.url_host}:{port}/mcp"
        directory = stack.enter_context(temporary_dir())
        staged = self._stage(directory, port)
        self.extension_dir = staged.path

        self.bridge = Bridge(
            secret=staged.secret,
            origin=staged.origin,
            version=__version__,
            message_limit=settings.message_limit,
            clock=self._clock,
            wrap_socket=self._wrap_socket,
        )
        self.toolbox = self._make_toolbox(self.bridge)
        if self._trace is not None:
            writer = stack.enter_context(TraceWriter(self._trace, version=__version__))
            self.toolbox.observe(writer.write)
        await self._plugins.serve(self.bridge, self.toolbox, staged)
        if self._python is not None:
            self.toolbox.add_tools(self._python.tools)
            stack.callback(self._python.close)

        tasks = self._tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        await tasks.start(self.bridge.run)
        launch = None
        if self._launcher is not None and chromium is not None:
            plan = LaunchPlan(
                chromium=chromium,
                extension=staged.path,
                profile=settings.profile or directory / "profile",
                scratch=directory,
                headed=settings.headed,
                args=self._args,
                ignore_default_args=self._ignore_default_args,
            )
            launch = BackgroundLaunch(self._launcher(plan))
            stack.push_async_callback(launch.close)
            tasks.start_soon(launch.run)
            await anyio.lowlevel.checkpoint()  # it begins before what follows is loaded
        await self._serve(stack, listener)
        if launch is not None:
            self._context = await launch.result()
            if self._context is not None:
                self._context.on("close", lambda _: self.take_browser_gone())
            await self._wait_connected()
        self._is_open = True

    def _make_tools(self, given: Sequence[Any]) -> "PythonTools":
        from opentabs_py.tools.collection import PythonTools  # noqa: PLC0415
        from opentabs_py.tools.run import ToolHost  # noqa: PLC0415

        limits, message_limit = self.settings.limits, self.settings.message_limit
        return PythonTools(
            given, ToolHost(self._clock, limits, message_limit, observers=self._observers)
        )

    def _make_toolbox(self, bridge: Bridge | None = None) -> Toolbox:
        """Give the toolbox; without a bridge, one that has the Python tools alone."""
        settings = self.settings
        toolbox = Toolbox(
            bridge or Bridge(secret="", origin="", version=__version__, clock=self._clock),
            limits=settings.limits,
            input_limit=settings.message_limit,
            strict_output=settings.strict_output,
        )
        if self._observes_pages:
            toolbox.on_page_report = self._tell_page_reports
        if self._python is not None:
            self._python.host.caller = toolbox
            if bridge is None:
                toolbox.add_tools(self._python.tools)
        return toolbox

    def _tell_page_reports(
        self, name: str, call_id: str, reports: Sequence[ProgressReport]
    ) -> None:
        for report in reports:
            told = Told.of_report(report)
            self._observers.tell(Event(name, call_id, report.seq, told))

    async def _serve(self, stack: AsyncExitStack, listener: socket.socket) -> None:
        from opentabs_py.server.http import create_app, serve_http  # noqa: PLC0415
        from opentabs_py.server.mcp_side import McpSide  # noqa: PLC0415

        streams = None if self._python is None else self._python.streams
        self._mcp_side = McpSide(self.toolbox, self.settings, version=__version__, streams=streams)
        self._tasks.start_soon(self._mcp_side.run)
        app = create_app(
            self._mcp_side.endpoints,
            self.bridge,
            host=self.settings.url_host,
            token=token.get_secret_value() if (token := self.settings.token) else None,
        )
        await stack.enter_async_context(serve_http(app, listener))

    def _stage(self, directory: Path, port: int) -> StagedExtension:
        if self._launcher is not None or not self._has_pages:
            return stage_extension(
                directory / "extension",
                port=port,
                host=self.settings.url_host,
                sites=self._plugins.sites,
                relay_script=self._relay_script,
            )
        # Loaded by hand, so it stays where it is from run to run, and keeps its secret.
        kept = data_dir() / "extension"
        kept.mkdir(parents=True, exist_ok=True)
        secret = kept_secret(data_dir() / "secret")
        return stage_extension(kept, port=port, host=self.settings.url_host, secret=secret)

    async def _wait_connected(self) -> None:
        with anyio.move_on_after(CONNECT_WITHIN) as scope:
            await self.bridge.wait_connected()
        if scope.cancelled_caught:
            raise BrowserError(
                f"The extension did not connect within {CONNECT_WITHIN:g} s of the browser's "
                "start. Branded Chrome and Edge refuse to load it; `opentabs doctor` tells more."
            )


Server = OpenTabs
"""The same, by the name that suits a server of tools written in Python."""
