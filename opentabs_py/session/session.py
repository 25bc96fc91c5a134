"""A server, a browser and plugins as one: the library's front door.

Importing it loads little. Playwright's driver takes a third of a second to start, in its own
process, and loading the rest of a session takes as long, so both happen in parallel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import anyio
import anyio.to_thread
from playwright.async_api import BrowserContext, Error, Page

from opentabs_py import __version__, stacks
from opentabs_py.browser.addresses import with_scheme
from opentabs_py.browser.crashes import start_worker_at_crashes
from opentabs_py.browser.launch import BackgroundLaunch, Launcher, launch_browser
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.errors import BrowserError
from opentabs_py.session.seams import Seams

if TYPE_CHECKING:
    from mcp.server import Server as McpServer
    from mcp.types import CallToolResult

    from opentabs_py.bridge.bridge import Bridge
    from opentabs_py.calling.running import RunningCall
    from opentabs_py.calling.tool import Tool
    from opentabs_py.config.settings import Settings
    from opentabs_py.core.limits import Limits
    from opentabs_py.core.progress import ProgressReport
    from opentabs_py.plugins.plugin import Plugin, PluginChanges, Quarantined
    from opentabs_py.python_tools.collection import PythonTools
    from opentabs_py.python_tools.observers import Handler, Observers
    from opentabs_py.server.registry import ToolRegistry
    from opentabs_py.session.plugins import PluginView
    from opentabs_py.session.startup import SessionServer

logger = logging.getLogger(__name__)


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
            loaded by hand, from `extension_dir`. A `Launcher` starts one in its own way. With
            Python tools and without plugins, no browser is started.
        settings: Where to listen, what to launch, how long calls may take.
        read_settings: Reads the settings again when plugins are reloaded: the list of plugins and
            their settings may change while the session runs.
        args: More command-line switches for Chromium.
        ignore_default_args: Playwright switches to leave out.
        reopen: If a call needs the browser after it was closed or has died, relaunch it and open
            these pages in it. Without it, such calls fail.
        trace: A file to write every call to; `opentabs trace show` reads it.
        seams: Where tests take the place of the chain's parts.
    """

    bridge: Bridge
    registry: ToolRegistry
    mcp_url: str
    extension_dir: Path

    def __init__(
        self,
        *,
        tools: Sequence[Any] = (),
        plugins: Sequence[str | Path] = (),
        browser: Literal["launch", "none"] | Launcher = "launch",
        settings: Settings | None = None,
        read_settings: Callable[[], Settings] | None = None,
        args: Sequence[str] = (),
        ignore_default_args: Sequence[str] = (),
        reopen: Sequence[str] | None = None,
        trace: Path | None = None,
        seams: Seams | None = None,
    ) -> None:
        self._settings = settings
        self._read_settings = read_settings
        self._directories = [*map(Path, plugins)]
        self._has_tools = bool(tools)
        self._browser = browser
        self._args = args
        self._ignore_default_args = ignore_default_args
        self._seams = seams or Seams()
        self._clock = AlarmClock(self._seams.clock)
        self._trace = trace
        self._python = self._make_tools(tools) if tools else None
        self._stack = AsyncExitStack()
        self._launch: BackgroundLaunch | None = None
        self._context: BrowserContext | None = None
        self._browser_gone = anyio.Event()
        self._reopen = reopen
        self._reopening = anyio.Lock()
        self._keeps_records = False
        self._is_open = False
        self._server: SessionServer

    async def __aenter__(self) -> Self:
        """Start everything; with a browser, wait until its extension is connected.

        Raises:
            BrowserError: No Chromium, or it did not start or connect.
            ConfigError: The port is not available, or a setting names a plugin that does not
                exist.
        """
        try:
            await self._start(self._stack)
        except BaseException:
            await stacks.close(self._stack)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop everything, in reverse order."""
        self._reopen = None  # the last calls must not launch a browser
        # Arguments not passed on: our task groups would wrap the caller's error in a group.
        await stacks.close(self._stack)

    @cached_property
    def settings(self) -> Settings:
        """The settings of the session.

        Raises:
            ConfigError: A value is not valid.
        """
        from opentabs_py.config.settings import load_settings  # noqa: PLC0415

        return self._settings or load_settings()

    @property
    def on_tool_progress(self) -> Observers:
        """The application's progress handlers: assign one, or call this to add several.

        A handler is called with the tool's name, the call's id and the reported data, and by
        name with those of `seq`, `message`, `progress`, `total` and `kind` that it accepts.
        """
        return self._observers

    @on_tool_progress.setter
    def on_tool_progress(self, handler: Handler | None) -> None:
        self.on_tool_progress.assign(handler)

    @property
    def has_pages(self) -> bool:
        """Whether there is anything for a browser to do; with Python tools alone there is not."""
        # The settings last: usually they need not be loaded to decide this.
        return (
            callable(self._browser)
            or bool(self._directories)
            or not self._has_tools
            or bool(self.settings.plugins or self.settings.plugin_folders)
        )

    @property
    def context(self) -> BrowserContext:
        """Playwright's browser context; its pages are the browser's tabs.

        Raises:
            BrowserError: This session did not launch a browser.
        """
        if self._context is None:
            raise BrowserError("This session controls no browser; open pages in your own.")
        return self._context

    @property
    def mcp_server(self) -> McpServer[Any]:
        """The MCP server, for transports other than HTTP."""
        return self._server.mcp_side.server

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that are served."""
        return self.registry.tools

    def output_schema(self, name: str) -> Mapping[str, Any] | None:
        """Return a tool's output schema; None if there is no such tool, or it has none."""
        tool = self.registry.get(name)
        return None if tool is None else tool.listing.output_schema

    @property
    def plugins(self) -> Sequence[Plugin]:
        """The plugins that are served."""
        return self._server.plugins.plugins

    @property
    def quarantined(self) -> Sequence[Quarantined]:
        """The faulty plugins, and why."""
        return self._server.plugins.quarantined

    def plugin(self, name: str | None = None) -> PluginView:
        """Return a plugin by name; without a name, the only one.

        Raises:
            LookupError: There is no such plugin; or, without a name, not exactly one.
        """
        return self._server.plugins.view(name)

    @property
    def browser_is_gone(self) -> bool:
        """Whether the browser was closed or died while the session ran."""
        return self._browser_gone.is_set()

    async def wait_browser_gone(self) -> None:
        """Wait until the browser was closed or died."""
        await self._browser_gone.wait()

    def handle_browser_gone(self) -> None:
        """Record that the browser was closed or died; for launchers that yielded no context."""
        self.bridge.handle_browser_gone()
        self._browser_gone.set()
        if self._reopen is not None:
            self.bridge.bring_browser = self._bring_browser

    async def wait_browser_back(self) -> None:
        """Wait until a browser that was closed has been relaunched."""
        while self.browser_is_gone:
            await self.bridge.changed().wait()

    async def reopen_browser(self) -> None:
        """Relaunch the browser in the same way, if it was closed or has died.

        Raises:
            BrowserError: It did not start or connect.
        """
        async with self._reopening:
            if self._launch is None or not self.browser_is_gone:
                return
            self._handle_browser(await self._launch.again(self._server.tasks))
            await self._server.wait_connected()
            for url in self._reopen or ():
                try:
                    await self.open(url)
                except BrowserError as error:
                    logger.warning("%s", error)

    async def _bring_browser(self) -> None:
        from opentabs_py.core import failures  # noqa: PLC0415

        try:
            await self.reopen_browser()
        except BrowserError as error:
            raise failures.no_browser(str(error)) from error

    def _handle_browser(self, context: BrowserContext | None) -> None:
        self._context = context
        self._browser_gone = anyio.Event()
        self.bridge.handle_browser()
        if context is not None:
            context.on("close", self._handle_closed)
            start_worker_at_crashes(
                context, self.bridge.origin, lambda: self.bridge.connected, self._server.tasks
            )

    def _handle_closed(self, context: BrowserContext) -> None:
        if context is self._context:
            self.handle_browser_gone()

    async def open(self, url: str) -> Page:
        """Open a page in a new tab and wait for it to load.

        Args:
            url: With or without its scheme, as people type it.

        Raises:
            BrowserError: The page cannot be opened.
        """
        blank = [page for page in self.context.pages if page.url == "about:blank"]
        try:
            page = blank[0] if blank else await self.context.new_page()
            answer = await page.goto(with_scheme(url))
        except Error as error:
            reason = error.message.splitlines()[0]
            raise BrowserError(f"Cannot open {url}: {reason}. Check the address.") from error
        if answer is not None and answer.status >= 400:
            logger.warning("%s answered %d %s", url, answer.status, answer.status_text)
        return page

    async def open_start_page(self, plugin: str) -> Page | None:
        """Open the page to try a plugin on: its `playground/`, or else its homepage.

        This session serves the playground, if the plugin matches pages on this machine.

        Returns:
            The page, or None if the plugin has neither.

        Raises:
            BrowserError: The page cannot be opened, or there is no such plugin.
        """
        url = await self.start_page_url(plugin)
        return None if url is None else await self.open(url)

    async def start_page_url(self, plugin: str) -> str | None:
        """Return the address of the page that `open_start_page` opens.

        Raises:
            BrowserError: There is no such plugin.
        """
        found = self._server.plugins.find(plugin)
        if found is None:
            raise BrowserError(f"There is no plugin {plugin!r} whose page could be opened.")
        return await self._server.serve_playground(found) or found.manifest.homepage

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
    ) -> Any:
        """Call a tool by its MCP name, without an MCP client; see `ToolRegistry.call`."""
        from opentabs_py.calling.observer import progress_observers  # noqa: PLC0415

        observers = progress_observers(on_progress)
        return await self.registry.call(name, arguments or {}, limits=limits, observers=observers)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Sequence[ProgressReport]], None] | None = None,
        call_id: str | None = None,
    ) -> CallToolResult:
        """Call a tool by its MCP name, and return its result as MCP clients receive it.

        If all tools are written in Python, this also works outside the context.

        Args:
            name: As in `tools/list`.
            arguments: They must match the tool's schema.
            limits: Timers to use instead of the tool's.
            on_progress: Called with each batch of reports, in order; must not block or raise.
            call_id: The call's id, as progress handlers receive it; a new one by default.

        Raises:
            RuntimeError: There are plugins, but the server is not running.
        """
        from opentabs_py.bridge.bridge import Bridge  # noqa: PLC0415
        from opentabs_py.calling.observer import progress_observers  # noqa: PLC0415
        from opentabs_py.server.mcp import run_tool  # noqa: PLC0415
        from opentabs_py.session.startup import add_python_tools, create_registry  # noqa: PLC0415

        async with AsyncExitStack() as stack:
            if not self._is_open:
                if self.has_pages:
                    raise RuntimeError("Enter the server first: async with Server(...) as server.")
                no_bridge = Bridge(secret="", origin="", version=__version__, clock=self._clock)
                self.registry = create_registry(self.settings, no_bridge)
                self._observe_pages()
                if self._python is not None:
                    add_python_tools(self.registry, self._python)
                tasks = await stack.enter_async_context(anyio.create_task_group())
                stack.callback(tasks.cancel_scope.cancel)
                tasks.start_soon(self._clock.run)
            result = await run_tool(
                self.registry,
                name,
                arguments or {},
                limits=limits,
                observers=progress_observers(on_progress),
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
        """Start a call; return it once it has been sent to its page, or has ended before that.

        The call holds its own outcome, including its `record`: from the first started call on,
        this session's calls are traced. Leaving the session cancels it.
        """
        from opentabs_py.calling.running import RunningCall, keep_record, keep_start  # noqa: PLC0415

        if not self._keeps_records:
            self._keeps_records = True
            self.registry.observe(keep_record, on_start=keep_start)
        call = RunningCall(name, arguments or {}, output_schema=self.output_schema(name))
        self._server.tasks.start_soon(call.run, self.registry, limits)
        await call.wait_sent()
        return call

    async def reload_plugins(self) -> PluginChanges:
        """Load all plugins again, and serve their current versions.

        In open documents a new adapter replaces the old one, which is torn down first; calls
        running in the old one continue. MCP clients are notified if the tool list changes. A
        plugin that has become faulty stays in service unchanged, and the fault is logged.
        """
        return await self._server.plugins.reload()

    async def watch_plugins(self) -> None:
        """Reload the plugins whenever they or the settings files change, until cancelled."""
        await self._server.plugins.watch()

    async def _start(self, stack: AsyncExitStack) -> None:
        launch = self._launch = await self._begin_launch(stack)
        # Not abandoned when cancelled: if the interpreter exits while a thread imports a C++
        # module, it aborts.
        await anyio.to_thread.run_sync(import_module, "opentabs_py.session.startup")
        from opentabs_py.session.startup import SessionServer  # noqa: PLC0415

        server = self._server = SessionServer(
            self.settings,
            version=__version__,
            directories=self._directories,
            read_settings=self._read_settings,
            python=self._python,
            clock=self._clock,
            trace=self._trace,
            seams=self._seams,
        )
        await server.start(
            stack,
            launch,
            args=self._args,
            ignore_default_args=self._ignore_default_args,
            by_hand=launch is None and self.has_pages,
        )
        self.bridge, self.registry = server.bridge, server.registry
        self.mcp_url, self.extension_dir = server.mcp_url, server.extension_dir
        self._observe_pages()
        if launch is not None:
            self._handle_browser(await launch.result())
            await server.wait_connected()
        self._is_open = True

    async def _begin_launch(self, stack: AsyncExitStack) -> BackgroundLaunch | None:
        if callable(self._browser):
            launcher = self._browser
        elif self._browser == "launch" and self.has_pages:
            launcher = launch_browser
        else:
            return None
        launch = BackgroundLaunch(launcher)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(launch.run)
        return launch

    def _make_tools(self, given: Sequence[Any]) -> PythonTools:
        from opentabs_py.python_tools.collection import PythonTools  # noqa: PLC0415
        from opentabs_py.python_tools.run import ToolHost  # noqa: PLC0415

        limits, message_limit = self.settings.limits, self.settings.message_limit
        return PythonTools(
            given, ToolHost(self._clock, limits, message_limit, observers=self._observers)
        )

    @cached_property
    def _observers(self) -> Observers:
        from opentabs_py.python_tools.observers import Observers  # noqa: PLC0415

        return Observers(self._observe_pages)

    def _observe_pages(self) -> None:
        """Pass the reports of page tools to the progress handlers, if there are any."""
        observers: Observers | None = vars(self).get("_observers")  # created on first use
        if observers and hasattr(self, "registry"):
            self.registry.on_page_report = observers.notify_page_reports


Server = OpenTabs
"""The same class, under a name that suits a server of Python tools."""
