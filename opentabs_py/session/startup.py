"""What a session serves: plugins and tools, to the extension and to MCP clients."""

import socket
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.browser.chromium import configured_chromium
from opentabs_py.browser.launch import BackgroundLaunch, LaunchPlan
from opentabs_py.browser.scratch import temporary_dir
from opentabs_py.browser.stage import StagedExtension, kept_secret, stage_extension
from opentabs_py.browser.switches import configured_sandbox
from opentabs_py.calling.clock import AlarmClock
from opentabs_py.config.paths import cache_dir, data_dir
from opentabs_py.config.settings import Settings
from opentabs_py.core.match_patterns import parse as parse_match_pattern
from opentabs_py.errors import BrowserError
from opentabs_py.plugins.load import playground
from opentabs_py.plugins.manifest_cache import ManifestCache
from opentabs_py.plugins.plugin import Plugin
from opentabs_py.server.http import create_app, serve_directory, serve_http
from opentabs_py.server.listen import bind
from opentabs_py.server.mcp_side import McpSide
from opentabs_py.server.registry import ToolRegistry
from opentabs_py.session.plugins import PluginSet
from opentabs_py.session.seams import Seams
from opentabs_py.tracing.file import TraceWriter

if TYPE_CHECKING:
    from opentabs_py.python_tools.collection import PythonTools

CONNECT_WITHIN = 20.0  # s; usually takes half a second, on a loaded machine several


class SessionServer:
    """The server of one session, from its plugins on disk to its port.

    Args:
        settings: Where to listen, how long calls may take.
        version: The server's version, as reported to clients and the extension.
        directories: Directories of built plugins, in addition to those in the settings.
        read_settings: Reads the settings again, because those of plugins may change.
        python: The tools written in Python.
        clock: The clock of the calls' timers, which other timers share.
        trace: A file to write every call to.
        seams: Where tests take the place of the chain's parts.

    Attributes:
        plugins: The plugins found in the directories.
        bridge: The link to the extension.
        registry: All tools that are served.
        mcp_side: The servers that MCP clients talk to.
        mcp_url: The URL that MCP clients connect to.
        extension_dir: The extension that connects here.
        tasks: Tasks that run as long as the session.
    """

    bridge: Bridge
    registry: ToolRegistry
    mcp_side: McpSide
    mcp_url: str
    extension_dir: Path
    tasks: TaskGroup

    def __init__(
        self,
        settings: Settings,
        *,
        version: str,
        directories: Sequence[Path],
        read_settings: Callable[[], Settings] | None,
        python: "PythonTools | None",
        clock: AlarmClock,
        trace: Path | None,
        seams: Seams,
    ) -> None:
        self._settings = settings
        self._version = version
        self._python = python
        self._clock = clock
        self._trace = trace
        self._seams = seams
        self._playgrounds: dict[Path, str] = {}
        self.plugins = PluginSet(
            directories,
            settings,
            read_settings=read_settings,
            cache=ManifestCache(cache_dir() / "manifests.sqlite", version=version),
        )

    async def start(
        self,
        stack: AsyncExitStack,
        launch: BackgroundLaunch | None,
        *,
        args: Sequence[str],
        ignore_default_args: Sequence[str],
        by_hand: bool,
    ) -> None:
        """Start everything, and launch the browser.

        Args:
            stack: Stops everything.
            launch: The browser's launch, which waits for a plan.
            args: More command-line switches for it.
            ignore_default_args: Playwright switches to leave out.
            by_hand: The user loads the extension into their own browser.

        Raises:
            BrowserError: There is no Chromium.
            ConfigError: The port is not available, or a setting names a plugin that does not
                exist.
        """
        settings = self._settings
        chromium = None if launch is None else configured_chromium(settings)
        listener = bind(settings.host, settings.port)
        stack.callback(listener.close)
        port = listener.getsockname()[1]
        self.mcp_url = f"http://{settings.url_host}:{port}/mcp"
        directory = stack.enter_context(temporary_dir())
        staged = self._stage(None if by_hand else directory / "extension", port)
        self.extension_dir = staged.path

        self.bridge = Bridge(
            secret=staged.secret,
            origin=staged.origin,
            version=self._version,
            message_limit=settings.message_limit,
            clock=self._clock,
            wrap_socket=self._seams.wrap_socket,
        )
        self.registry = create_registry(settings, self.bridge)
        if self._trace is not None:
            writer = stack.enter_context(TraceWriter(self._trace, version=self._version))
            self.registry.observe(writer.write)
        if launch is not None and chromium is not None:
            stack.push_async_callback(launch.close)  # if the following fails
            launch.go_by(
                LaunchPlan(
                    chromium=chromium,
                    extension=staged.path,
                    profile=settings.profile or directory / "profile",
                    scratch=directory,
                    headed=settings.headed,
                    sandbox=configured_sandbox(settings),
                    keeps_profile=settings.profile is not None,
                    args=args,
                    ignore_default_args=ignore_default_args,
                )
            )
        # While the browser starts. What connects meanwhile waits in the listener's queue.
        await self.plugins.serve(self.bridge, self.registry, staged)
        if self._python is not None:
            add_python_tools(self.registry, self._python)
            stack.callback(self._python.close)

        self.tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(self.tasks.cancel_scope.cancel)
        await self.tasks.start(self.bridge.calls.run)
        stop = await self._serve(stack, listener)
        if launch is not None:
            stack.push_async_callback(launch.close)  # before what the pages need
            stack.callback(stop)  # while the browser closes

    async def wait_connected(self) -> None:
        """Wait for the extension of a browser that has been launched.

        Raises:
            BrowserError: It does not connect.
        """
        with anyio.move_on_after(CONNECT_WITHIN) as scope:
            await self.bridge.wait_connected()
        if scope.cancelled_caught:
            raise BrowserError(
                f"The extension did not connect within {CONNECT_WITHIN:g} s of the browser's "
                "start. Branded Chrome and Edge refuse to load it; run `opentabs doctor`."
            )

    async def serve_playground(self, plugin: Plugin) -> str | None:
        """Serve a plugin's `playground/` and return its URL, if it matches local pages."""
        directory = playground(plugin.directory)
        # Any port will do, because patterns without a port match all ports.
        patterns = [parse_match_pattern(each) for each in plugin.manifest.url_patterns]
        if directory is None or not any(each.matches("http://127.0.0.1/") for each in patterns):
            return None
        if plugin.directory not in self._playgrounds:
            listener = bind("127.0.0.1", 0)
            # In a task of the session, because the caller's task may end.
            await self.tasks.start(serve_directory, directory, listener)
            port = listener.getsockname()[1]
            self._playgrounds[plugin.directory] = f"http://127.0.0.1:{port}/"
        return self._playgrounds[plugin.directory]

    async def _serve(self, stack: AsyncExitStack, listener: socket.socket) -> Callable[[], None]:
        settings = self._settings
        streams = None if self._python is None else self._python.streams
        self.mcp_side = McpSide(self.registry, settings, version=self._version, streams=streams)
        self.tasks.start_soon(self.mcp_side.run)
        stack.callback(self.mcp_side.close)
        app = create_app(
            self.mcp_side.endpoints,
            self.bridge,
            host=settings.url_host,
            token=token.get_secret_value() if (token := settings.token) else None,
        )
        return await stack.enter_async_context(
            serve_http(app, listener, on_stop=self.mcp_side.stop)
        )

    def _stage(self, into: Path | None, port: int) -> StagedExtension:
        host = self._settings.url_host
        if into is not None:
            sites, script = self.plugins.sites, self._seams.relay_script
            return stage_extension(into, port=port, host=host, sites=sites, relay_script=script)
        # Loaded by hand, so it keeps its place and its secret from run to run.
        kept = data_dir() / "extension"
        kept.mkdir(parents=True, exist_ok=True)
        return stage_extension(
            kept, port=port, host=host, secret=kept_secret(data_dir() / "secret")
        )


def create_registry(settings: Settings, bridge: Bridge) -> ToolRegistry:
    """Return a registry configured by the settings."""
    return ToolRegistry(
        bridge,
        limits=settings.limits,
        input_limit=settings.message_limit,
        strict_output=settings.strict_output,
        debug=settings.debug,
    )


def add_python_tools(registry: ToolRegistry, python: "PythonTools") -> None:
    """Serve Python tools as well, which may call all other tools.

    Raises:
        ConfigError: Two tools have the same name.
    """
    python.host.caller = registry
    registry.add_tools(python.tools)
