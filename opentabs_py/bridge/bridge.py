"""The link to one browser's extension: its connection, tabs, plugins and calls."""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from opentabs_py.bridge.calls import PageCalls
from opentabs_py.bridge.link import Connection, Incoming, Socket, SocketClosedError
from opentabs_py.bridge.plugin_sync import PluginSync
from opentabs_py.calling.clock import Clock, SystemClock, wall_clock
from opentabs_py.calling.tool import ToolCall
from opentabs_py.core import protocol
from opentabs_py.core.placement import Ask, Placement
from opentabs_py.core.tabs import Tabs, Target, Wait
from opentabs_py.errors import ChainError

logger = logging.getLogger(__name__)

QUERY_WITHIN = 2.0  # s; an answer takes a few ms
SYNC_WITHIN = 2.0  # s; an answer takes tens of ms, but a hanging page prevents it
HELLO_WITHIN = 10.0  # s; the extension sends it as soon as the socket is open
SUBPROTOCOL = "opentabs"
_PRESENTED = "opentabs.secret."


class Bridge:
    """The link to one browser's extension.

    Args:
        secret: The secret the extension must send; written into its `config.json`.
        origin: The Origin its WebSocket must come from, `chrome-extension://ID`.
        version: Sent to the extension, for its logs.
        message_limit: The longest message in either direction, in characters.
        clock: The clock of the calls' timers, but of no other wait. By default, real time.
        wrap_socket: Called with each connection's socket; returns the one to use instead.

    Attributes:
        calls: The calls in the browser's pages.
        tabs: The state of its tabs.
        bring_browser: Launches a browser if there is none and a call needs one.
        on_log: Called with what plugins log.
    """

    def __init__(
        self,
        *,
        secret: str,
        origin: str,
        version: str,
        message_limit: int = 64 * 1024 * 1024,
        clock: Clock | None = None,
        wrap_socket: Callable[[Socket], Socket] = lambda socket: socket,
    ) -> None:
        self.clock = clock or SystemClock()
        self.origin = origin
        self.calls = PageCalls(self.clock)
        self.tabs = Tabs()
        self.message_limit = message_limit
        self.extension_version: str | None = None
        self.bring_browser: Callable[[], Awaitable[None]] | None = None
        self.on_log: Callable[[protocol.LogParams], None] = _log_plugin
        self._wrap_socket = wrap_socket
        self._secret = secret
        self._version = version
        self._sync = PluginSync(self._notify)
        self._connection: Connection | None = None
        self._changed = anyio.Event()

    # --- for callers ---

    @property
    def connected(self) -> bool:
        """Whether an extension has said hello and is still connected."""
        return self._connection is not None

    async def call(self, target: Target, tool: str, call: ToolCall) -> Any:
        """Run a plugin's tool in one of its tabs and return its JSON value.

        Cancelling this coroutine stops the tool: MCP 2025-11-25, "Cancellation".

        Raises:
            CallTimeoutError: No progress for `limits.idle` seconds, or no result after
                `limits.ceiling`.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
        """
        if self.bring_browser is not None:
            await self.bring_browser()
        placement = Placement(target)
        while True:
            document = await self._place(placement)
            try:
                return await self.calls.call(document, target.plugin, tool, call)
            except ChainError as error:
                if not placement.retry(error):
                    raise

    async def wait_connected(self) -> None:
        """Wait until an extension has said hello and has all plugins."""
        while self._connection is None or not self._sync.is_done:
            await self._changed.wait()

    async def wait_ready(self, plugin: str) -> protocol.DocumentState:
        """Wait for a document in which the plugin is ready, and return its state."""
        while True:
            for document in self.tabs.serving(plugin):
                if document.plugins[plugin].readiness == "ready":
                    return document
            await self._changed.wait()

    @property
    def plugins(self) -> list[str]:
        """The names of the plugins that the extension receives."""
        return [plugin.name for plugin in self._sync.plugins]

    @property
    def plugin_faults(self) -> Sequence[protocol.PluginFault]:
        """The plugins that the extension could not inject, and where."""
        return self._sync.faults

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of connection, tabs or plugins."""
        return self._changed

    async def sync_plugins(self, plugins: Sequence[protocol.PluginSpec]) -> None:
        """Send the list of plugins to the extension, now and at every hello.

        Waits until it has injected them into the open documents, except hanging ones.
        """
        self._sync.plugins = plugins
        if self._connection is not None:
            self._sync.send(self._connection)
            await self._sync.wait(SYNC_WITHIN)

    def handle_browser_gone(self) -> None:
        """Handle the browser's exit: every page is gone."""
        self.tabs.has_browser = False
        self.calls.handle_browser_gone()

    def handle_browser(self) -> None:
        """Handle a new browser, whose extension will connect."""
        self.tabs.has_browser = True
        self.bring_browser = None

    def disconnect(self, code: int, reason: str) -> None:
        """Close the extension's connection; it reconnects by itself."""
        if self._connection is not None:
            self._connection.start_close(code, reason)

    # --- the connection ---

    def accepts(self, subprotocols: Sequence[str]) -> bool:
        """Return whether one of the offered subprotocols carries our secret."""
        wanted = f"{_PRESENTED}{self._secret}".encode()
        return any(hmac.compare_digest(offered.encode(), wanted) for offered in subprotocols)

    async def serve(self, socket: Socket) -> None:
        """Serve one accepted connection until it ends."""
        connection = Connection(self._wrap_socket(socket), message_limit=self.message_limit)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(connection.write)
                tasks.start_soon(connection.keep_alive)
                try:
                    await self._read(connection)
                except SocketClosedError:
                    logger.debug("The extension's connection ended")
                tasks.cancel_scope.cancel()
        finally:
            connection.abandon_requests()
            if self._connection is connection:
                self._connection = None
                self.tabs.connection_changed(connected=False, now=anyio.current_time())
                self.calls.handle_disconnected()
                self._notify()

    async def _read(self, connection: Connection) -> None:
        hello = None
        with anyio.move_on_after(HELLO_WITHIN):
            while not isinstance(hello := await connection.receive(), protocol.Hello):
                connection.refuse("send hello first")
        if not isinstance(hello, protocol.Hello):
            await connection.close(protocol.CLOSE_PROTOCOL, f"no hello within {HELLO_WITHIN:g} s")
        elif hello.params.protocol_version != protocol.PROTOCOL_VERSION:
            reason = (
                f"protocol {hello.params.protocol_version}, wanted {protocol.PROTOCOL_VERSION}: "
                "update the extension and reload it"
            )
            await connection.close(protocol.CLOSE_BAD_VERSION, reason)
        else:
            self._greet(connection, hello)
            while True:
                message = await connection.receive()
                if self._connection is connection:  # a replaced connection no longer counts
                    self._handle(connection, message)

    def _greet(self, connection: Connection, hello: protocol.Hello) -> None:
        params = hello.params
        if self._connection is not None:
            self._connection.start_close(protocol.CLOSE_REPLACED, "replaced by a newer connection")
        now = anyio.current_time()
        connection.clock_offset = wall_clock() - params.time  # until a pong gives a better estimate
        self._connection = connection
        self.extension_version = params.extension_version
        result = protocol.HelloResult(
            server_version=self._version, time=wall_clock(), message_limit=self.message_limit
        )
        connection.send(protocol.Response(id=hello.id, result=result.model_dump()))
        connection.ping()
        self._sync.send(connection)
        self.tabs.connection_changed(connected=True, now=now)
        self.tabs.update(params.documents, now, loading=params.loading)
        self.calls.handle_connected(connection, params)
        self._notify()

    def _handle(self, connection: Connection, message: Incoming) -> None:
        match message:
            case (
                protocol.ToolProgress()
                | protocol.ToolResult()
                | protocol.ToolErrored()
                | protocol.ToolLost()
            ):
                self.calls.handle(connection, message)
            case protocol.ToolStamps(params=params):
                self.calls.handle_stamps(connection, params)
            case protocol.TabsChanged(params=params) | (protocol.TabsParams() as params):
                self.tabs.update(params.documents, anyio.current_time(), loading=params.loading)
                self.calls.handle_tabs(params)
                self._notify()
            case protocol.PluginLog(params=params):
                self.on_log(params)
                self.calls.handle_log(params)
            case protocol.Hello():
                connection.refuse("hello was already sent", request=message.id)
            case _:
                pass  # an answer that is awaited elsewhere

    def _notify(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    # --- where a call runs ---

    async def _place(self, placement: Placement) -> protocol.DocumentState:
        while True:
            changed = self._changed
            match placement.step(self.tabs, anyio.current_time()):
                case protocol.DocumentState() as document:
                    return document
                case Ask(plugin=plugin):
                    await self._ask(plugin)
                case Wait(until=until):
                    with anyio.CancelScope(deadline=until):
                        await changed.wait()

    async def _ask(self, plugin: str | None) -> None:
        """Wait for the extension to report its tabs; `_handle` receives them."""
        if self._connection is None:
            return
        query = protocol.QueryParams(plugin=plugin)
        answer = self._connection.request(
            lambda number: protocol.TabsQuery(id=number, params=query), protocol.TabsParams
        )
        await asyncio.wait([answer], timeout=QUERY_WITHIN)


def _log_plugin(params: protocol.LogParams) -> None:
    for entry in params.entries:
        level = logging.getLevelNamesMapping()[entry.level.upper()]
        # A page wrote these, so no control character may reach a terminal.
        text = "".join(c if c.isprintable() else " " for c in entry.message)
        logging.getLogger(f"opentabs_py.plugin.{params.plugin}").log(
            level, "%s: %s", params.plugin, text
        )
