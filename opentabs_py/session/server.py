"""Set up what a session serves: plugins and tools, to the extension and to MCP clients."""

import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup
from starlette.routing import BaseRoute

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.pages import Pages
from opentabs_py.browser.scratch import temporary_dir
from opentabs_py.browser.stage import StagedExtension
from opentabs_py.calling.clock import AlarmClock, wall_clock
from opentabs_py.config.fleet import FleetOptions
from opentabs_py.config.paths import audit_file, cache_dir, data_dir
from opentabs_py.config.settings import Settings
from opentabs_py.consent.reviews import Reviews
from opentabs_py.console.access import Access
from opentabs_py.console.log_tail import LogTail
from opentabs_py.console.routes import API, Console
from opentabs_py.console.watch import Watch
from opentabs_py.core.hosts import LOCAL
from opentabs_py.core.tabs.owners import SessionKey
from opentabs_py.errors import FleetError
from opentabs_py.plugins.manifest_cache import ManifestCache
from opentabs_py.server.http.app import create_app
from opentabs_py.server.http.guide import PATH as GUIDE
from opentabs_py.server.http.guide import guide
from opentabs_py.server.http.listen import bind
from opentabs_py.server.http.serve import serve_http
from opentabs_py.server.mcp.servers import McpServers
from opentabs_py.server.tools.page_tool_list import PageToolList
from opentabs_py.server.tools.ready_tools import ReadyTools
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.tool_calls import ToolCalls
from opentabs_py.session.audit import audited
from opentabs_py.session.browsers.address import keep_address
from opentabs_py.session.browsers.browser import SessionBrowser
from opentabs_py.session.browsers.setup import BrowserPlan, BrowserSetup
from opentabs_py.session.playgrounds import Playgrounds
from opentabs_py.session.plugins.plugins import PluginSet
from opentabs_py.session.seams import Seams
from opentabs_py.session.tools.backend import BrowserBackend, ToolBackend
from opentabs_py.session.tools.python_tool_set import PythonToolSet
from opentabs_py.session.tools.setup import create_tool_calls
from opentabs_py.session.tools.stopped_tools import StoppedTools
from opentabs_py.tracing.file import TraceWriter
from opentabs_py.version import __version__

if TYPE_CHECKING:
    from opentabs_py.fleet.endpoint import Fleet


class SessionServer:
    """The server of one session, from its plugins on disk to its port.

    Args:
        settings: Where to listen, how long calls may take.
        options: How the browsers are started.
        directories: Directories of built plugins, in addition to those in the settings.
        read_settings: Reads the settings again, because those of plugins may change.
        python: The tools written in Python.
        clock: The clock of the calls' timers, which other timers share.
        trace: A file to write every call to.
        seams: Where tests take the place of the chain's parts.
        fleet: The fleet whose workers' tools are served.
        browsers: The browsers; those that are launched wait for their plan.

    Attributes:
        browsers: The browsers; those into which the user loads the extension are added as they
            connect.
        plugin_set: The plugins found in the directories.
        pages: The pages of all browsers, in which tools run.
        tool_calls: The calls of all tools that are served.
        stopped_tools: Tools in pages that have ended after their calls had timed out.
        mcp_servers: The servers that MCP clients talk to.
        mcp_url: The URL that MCP clients connect to.
        guide_url: The page that guides through loading the extension by hand, if that is done.
        extension_dir: The extension that connects here.
        console: The web page that shows the session live.
        tasks: Tasks that run as long as the session.
    """

    pages: Pages
    tool_calls: ToolCalls
    stopped_tools: StoppedTools
    mcp_servers: McpServers
    mcp_url: str
    guide_url: str | None = None
    extension_dir: Path
    console: Console
    tasks: TaskGroup
    _backend: ToolBackend
    _extension: StagedExtension
    _playgrounds: Playgrounds

    def __init__(
        self,
        settings: Settings,
        options: BrowserPlan,
        *,
        directories: Sequence[Path],
        read_settings: Callable[[], Settings] | None,
        python: PythonToolSet,
        clock: AlarmClock,
        trace: Path | None,
        seams: Seams,
        fleet: FleetOptions | None,
        browsers: list[SessionBrowser],
    ) -> None:
        self._settings = settings
        self._options = options
        self._python = python
        self._clock = clock
        self._trace = trace
        self._seams = seams
        self._fleet_options = fleet
        self.browsers = browsers
        self._fleet: Fleet | None = None
        self._history = ExitStack()
        self._keeps_history = False
        self.plugin_set = PluginSet(
            directories,
            settings,
            read_settings=read_settings,
            cache=ManifestCache(cache_dir() / "manifests.sqlite", version=__version__),
            reviews=Reviews(data_dir() / "reviews"),
            in_fleet=fleet is not None,
        )

    async def start(self, stack: AsyncExitStack, *, while_launching: Callable[[], None]) -> None:
        """Start everything, and launch the browsers.

        Args:
            stack: Stops everything.
            while_launching: Called once all browsers have their plan.

        Raises:
            BrowserError: There is no Chromium.
            ConfigError: The port is not available, or a setting names a plugin that does not
                exist.
        """
        settings = self._settings
        listener = bind(settings.host, settings.port)
        stack.callback(listener.close)
        port = listener.getsockname()[1]
        address = f"http://{settings.url_host}:{port}"
        self.mcp_url = f"{address}/mcp"
        self.guide_url = f"{address}{GUIDE}" if self._options.by_hand else None
        directory = stack.enter_context(temporary_dir())
        launches = [browser.launch for browser in self.browsers if browser.launch is not None]
        for launch in launches:
            stack.push_async_callback(launch.close)  # if the following fails
        setup = self._set_up_browsers(directory, port)
        while_launching()
        # While the browsers start. What connects before that waits in the listener's queue.
        self._backend = await self._create_backend(stack, setup, port)
        await self._create_tools(stack)
        self.tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(self.tasks.cancel_scope.cancel)
        self._playgrounds = Playgrounds(self.tasks)
        await self._start_tasks()
        stop = await self._serve(stack, listener)
        for launch in launches:
            stack.push_async_callback(launch.close)  # before what the pages need
        if launches:
            stack.callback(stop)  # while the browsers close
        else:
            stack.push_async_callback(self._backend.close_tabs)  # while extensions are connected
            stack.callback(self._end_requests)  # before calls notice that their tabs are closed

    def _set_up_browsers(self, directory: Path, port: int) -> BrowserSetup:
        """Create the extension of each browser and the link to it, and start the launches."""
        setup = BrowserSetup(
            self._settings,
            self._options,
            clock=self._clock,
            seams=self._seams,
            sites=self.plugin_set.sites,
            port=port,
            guide_url=self.guide_url,
        )
        setup.set_up(self.browsers, directory)
        self._extension = setup.extensions[0]
        self.extension_dir = self._extension.path
        self.pages = Pages(
            [browser.bridge for browser in self.browsers],
            clock=self._clock,
            join=partial(self._join, setup) if self._options.in_place else None,
            interchangeable=self._options.interchangeable,
        )
        return setup

    async def _create_backend(
        self, stack: AsyncExitStack, setup: BrowserSetup, port: int
    ) -> ToolBackend:
        """Return what serves the tools that need a page."""
        if self._fleet_options is not None:
            # It needs packages that are installed for fleets only.
            from opentabs_py.session.tools.fleet_backend import FleetBackend, join_fleet

            self._fleet = await join_fleet(stack, self._fleet_options, self._settings, self._clock)
            return FleetBackend(
                self._fleet, self.pages, self.plugin_set, self._settings, self._clock
            )
        names = dict.fromkeys((*LOCAL, self._settings.url_host))
        return BrowserBackend(
            self.browsers,
            self.pages,
            self.plugin_set,
            self._settings,
            self._clock,
            extensions=setup.extensions,
            own_pages=[f"http://{name}:{port}/*" for name in names],
            drive=self._seams.drive,
        )

    async def _create_tools(self, stack: AsyncExitStack) -> None:
        """Fill the registry with the tools of pages and of Python, and prepare their calls."""
        stack.push(self._history)
        registry = await self._backend.serve()
        self.tool_calls = create_tool_calls(
            registry, self.pages, self._settings, read_stack=self.plugin_set.read_stack
        )
        self._count_questions(stack)
        await self._record_calls(stack)
        self._python.serve(self.tool_calls)
        stack.callback(self._python.close)

    async def _start_tasks(self) -> None:
        """Start what runs as long as the session, before anything connects."""
        self.stopped_tools = StoppedTools(self.tasks, self.plugin_set.read_stack)
        for bridge in self.pages.bridges:
            bridge.read_positions = self.plugin_set.read_positions
            self.stopped_tools.watch(bridge.calls.timed_out)
            await self.tasks.start(bridge.calls.run)
        if self._options.in_place:
            self.tasks.start_soon(keep_address, self._extension)
        await self._backend.start(self.tasks)

    @property
    def registry(self) -> ToolRegistry:
        """The tools."""
        return self.tool_calls.registry

    @property
    def bridge(self) -> Bridge:
        """The link to the (first) browser's extension."""
        return self.browsers[0].bridge

    @property
    def launches_browser(self) -> bool:
        """Whether the session has a browser of its own, even if that was closed."""
        return self.browsers[0].launch is not None

    @property
    def fleet(self) -> "Fleet":
        """The fleet whose workers' tools are served.

        Raises:
            FleetError: This session is not an endpoint of a fleet.
        """
        if self._fleet is None:
            raise FleetError("This session belongs to no fleet. Pass `nats`, the address of one.")
        return self._fleet

    @property
    def page_tools(self) -> PageToolList:
        """The tools that pages register themselves.

        Raises:
            ConfigError: They are not served.
        """
        return self._backend.page_tools

    def handle_client_gone(self, client: SessionKey) -> None:
        """Handle the end of an MCP client: close its tabs and streams, and forget the rest."""
        self.tool_calls.registry.gate.forget(client)
        self._python.handle_client_gone(client)
        self._backend.handle_client_gone(client)

    def keep_history(self, logs: LogTail | None = None) -> None:
        """Remember calls and logs from now on, for the console.

        Args:
            logs: Has kept what was logged while the session started.
        """
        if not self._keeps_history:
            self._keeps_history = True
            self._history.enter_context(self.console.watch.watching(logs))

    def _count_questions(self, stack: AsyncExitStack) -> None:
        """Let every extension show how many calls wait for the user."""
        questions = self.tool_calls.registry.gate.questions

        def count() -> None:
            for bridge in self.pages.bridges:
                bridge.activity.set_waiting(len(questions.waiting))

        stack.callback(questions.subscribe(count))

    async def _record_calls(self, stack: AsyncExitStack) -> None:
        if self._trace is not None:
            writer = stack.enter_context(TraceWriter(self._trace, version=__version__))
            self.tool_calls.records.observe(writer.write)
        if self._settings.audit:
            context = audited(self.tool_calls, self._settings, self.plugin_set)
            await stack.enter_async_context(context)

    def _join(self, setup: BrowserSetup, name: str, index: int) -> Bridge:
        """Add a browser into which the user has loaded the extension."""
        joined = setup.join(name, index)
        joined.bridge.activity.set_waiting(len(self.tool_calls.registry.gate.questions.waiting))
        self.stopped_tools.watch(joined.bridge.calls.timed_out)
        self.tasks.start_soon(joined.bridge.calls.run)
        self.browsers.append(joined)
        return joined.bridge

    async def start_page_url(self, name: str) -> str | None:
        """Return the URL to try a plugin on: its `playground/`, or else its homepage."""
        plugin = self.plugin_set.find(name)
        if plugin is None:
            return None
        return await self._playgrounds.url_of(plugin) or plugin.manifest.homepage

    async def _serve(self, stack: AsyncExitStack, listener: socket.socket) -> Callable[[], None]:
        """Serve MCP clients, extensions and the console; return the function that stops it."""
        settings = self._settings
        ready = None
        if settings.expose == "ready":
            ready = ReadyTools(self.tool_calls.registry, self._backend.ready)
            self.tasks.start_soon(ready.run)
        self.mcp_servers = self._create_mcp_servers(ready)
        self.tasks.start_soon(self.mcp_servers.run)
        stack.callback(self.mcp_servers.close)
        self.console = self._create_console(port=listener.getsockname()[1])
        more: list[BaseRoute] = [*self.console.routes()]
        if self.guide_url is not None:
            more.append(
                guide(
                    self.pages,
                    directory=self.extension_dir,
                    mcp_url=self.mcp_url,
                    start_page=self.start_page_url,
                )
            )
        app = create_app(
            self.mcp_servers.http_apps,
            self.pages,
            host=settings.url_host,
            token=token.get_secret_value() if (token := settings.token) else None,
            more=more,
            for_extension=API,
        )

        return await stack.enter_async_context(
            serve_http(app, listener, on_stop=self._end_requests)
        )

    def _end_requests(self) -> None:
        """End all that clients and pages wait for."""
        self.tool_calls.running.stop()
        self.mcp_servers.stop()
        self.console.watch.stop()
        self._playgrounds.stop()

    def _create_mcp_servers(self, ready: ReadyTools | None) -> McpServers:
        return McpServers(
            self.tool_calls,
            self._settings,
            streams=None if self._python.tools is None else self._python.tools.streams,
            listed=ready,
            on_client_gone=self.handle_client_gone,
        )

    def _create_console(self, *, port: int) -> Console:
        return Console(
            Access(port, anyio.current_time, self.pages),
            Watch(
                self.tool_calls,
                self.pages,
                self.plugin_set,
                wall=wall_clock,
                link=None if self._fleet is None else self._fleet.link,
            ),
            self.tool_calls,
            self.plugin_set,
            self._settings.pace,
            self._settings.message_limit,
            audit_file(),
            begin=self.keep_history,
            fleet=self._fleet_options,
        )
