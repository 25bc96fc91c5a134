"""The link to one browser's extension: its connection, tabs, plugins and calls."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import inf
from typing import Any

import anyio

from opentabs_py.bridge.activity import Activity
from opentabs_py.bridge.calls import PageCalls
from opentabs_py.bridge.connection import Connection, Incoming, Socket
from opentabs_py.bridge.plugin_sync import PluginSync
from opentabs_py.bridge.reception import offers_secret, secrets_match, serve_connection
from opentabs_py.bridge.tab_requests import TabRequests
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.changes import Changes
from opentabs_py.calling.clock import MS, Clock, SystemClock, wall_clock
from opentabs_py.calling.plugin_log import plugin_logger
from opentabs_py.core import protocol
from opentabs_py.core.limits import MESSAGE_LIMIT
from opentabs_py.core.page_tools import PageRegistrations
from opentabs_py.core.tabs.browsers import renumbered
from opentabs_py.core.tabs.numbers import numbers_of
from opentabs_py.core.tabs.placement import Placement, QueryTabs
from opentabs_py.core.tabs.selection import Tabs, Target
from opentabs_py.core.text import visible
from opentabs_py.core.wire import OtherHello
from opentabs_py.errors import ChainError
from opentabs_py.version import __version__

GOING_AWAY = 1001  # RFC 6455, section 7.4.1
REMOVED_WITHIN = 1.0  # s; takes tens of ms
RELOAD_WITHIN = 15.0  # s; a reload of the extension takes 0.3 s, on a loaded machine several


class Bridge:
    """The link to one browser's extension.

    Args:
        secret: The secret the extension must send; written into its `config.json`.
        origin: The Origin its WebSocket must come from, `chrome-extension://ID`.
        message_limit: The longest message in either direction, in characters.
        clock: The clock of the calls' timers, but of no other wait. By default, real time.
        wrap_socket: Called with each connection's socket; returns the one to use instead.
        name: The browser's name, for users and agents.
        number: Its number among all browsers, with which those of its tabs begin.
        page_tools: Receives what its pages register themselves; None if that is not served.

    Attributes:
        calls: The calls in the browser's pages.
        activity: Counts them for the extension's icon, and those that wait for the user.
        browser_id: Identifies the browser's profile, as its extension says; None before that.
        tabs: The state of its tabs.
        tab_requests: Asks the extension to open, close or report tabs.
        plugin_sync: The plugins that the extension must have, and whether it has them.
        page_tools: What its pages have registered themselves; None if that is not served.
        relaunch_browser: Launches a browser if there is none and a call needs one.
        on_log: Called with what plugins log.
        read_positions: Maps the positions of built adapters in a text to the plugins' sources.
        on_change: Called at every change of connection, tabs or plugins.
    """

    def __init__(
        self,
        *,
        secret: str,
        origin: str,
        message_limit: int = MESSAGE_LIMIT,
        clock: Clock | None = None,
        wrap_socket: Callable[[Socket], Socket] = lambda socket: socket,
        name: str = "default",
        number: int = 0,
        page_tools: PageRegistrations | None = None,
    ) -> None:
        self.name = name
        self.number = number
        self._numbers = numbers_of(number)
        self.clock = clock or SystemClock()
        self.origin = origin
        self.calls = PageCalls(self.clock)
        self.activity = Activity()
        self.browser_id: str | None = None
        self.tabs = Tabs()
        self.page_tools = page_tools
        self.message_limit = message_limit
        self.extension_version: str | None = None
        self.relaunch_browser: Callable[[], Awaitable[None]] | None = None
        self.on_log: Callable[[protocol.LogParams], None] = _log_plugin
        self.read_positions: Callable[[str], str] = str
        self.on_change: Callable[[], None] = lambda: None
        self._wrap_socket = wrap_socket
        self._secret = secret
        self.plugin_sync = PluginSync(self._handle_synced)
        self._connection: Connection | None = None
        self._changes = Changes()
        self.tab_requests = TabRequests(
            self.tabs,
            self._numbers,
            self.plugin_sync,
            connection=lambda: self._connection,
            wait_reconnected=self.wait_reconnected,
        )

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
        call.cancellation.comes_in_time = True  # until it is sent to a page
        await self.ensure_browser()
        placement, was_relaunched = Placement(target), False
        began: float | None = None  # by the clock of the timers
        with self.activity.running():
            while True:
                try:
                    document = await self._place(placement)
                except ChainError:
                    if self.relaunch_browser is None or was_relaunched:
                        raise
                    await self.ensure_browser()  # it has exited since then
                    placement, was_relaunched = Placement(target), True
                    continue
                if self.tabs.owners:
                    self.tabs.owners.use(document.tab_id, target.purpose)
                began = self.clock.now() if began is None else began
                call.cancellation.comes_in_time = False
                try:
                    return await self.calls.call(document, target.plugin, tool, call, began=began)
                except ChainError as error:
                    if not placement.retry(error):
                        raise
                    call.cancellation.comes_in_time = True  # it was not delivered

    def find_document(self, target: Target) -> protocol.DocumentState | None:
        """Return the document in which a call would run now; None if that is not known."""
        found = self.tabs.choose(target, anyio.current_time())
        return found if isinstance(found, protocol.DocumentState) else None

    async def wait_connected(self) -> None:
        """Wait until an extension has said hello and has all plugins."""
        while self._connection is None or not self.plugin_sync.is_done:
            await self._changes.next().wait()

    async def wait_reconnected(self) -> None:
        """Wait for the extension if it has just disconnected.

        Raises:
            ChainError: It is not connected.
        """
        if (error := await self._changes.decide(self.tabs.why_disconnected)) is not None:
            raise error

    async def wait_ready(self, plugin: str) -> protocol.DocumentState:
        """Wait for a document in which the plugin is ready, and return its state."""
        while True:
            for document in self.tabs.serving(plugin):
                if document.plugins[plugin].readiness == "ready":
                    return document
            await self._changes.next().wait()

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of connection, tabs or plugins."""
        return self._changes.next()

    async def sync_plugins(
        self, plugins: Sequence[protocol.PluginSpec], *, reloads: bool = False
    ) -> None:
        """Send the list of plugins to the extension, now and at every hello.

        Waits until it has injected them into the open documents, except hanging ones.

        Args:
            plugins: The list.
            reloads: Whether the extension reloads itself when it receives the list.
        """
        self.plugin_sync.plugins = plugins
        if self._connection is None:
            return
        before = self.calls.boot_id
        self.plugin_sync.send(self._connection)
        if reloads:
            with anyio.move_on_after(RELOAD_WITHIN):
                while self.calls.boot_id == before:
                    await self._changes.next().wait()
                await self.wait_connected()
        else:
            await self.plugin_sync.wait()

    def hold_calls(self, seconds: float) -> None:
        """Send the browser no new call for some seconds, or until `release_calls`."""
        self.tabs.held_until = anyio.current_time() + seconds

    def release_calls(self) -> None:
        """Send the browser the calls that were held back, and new ones."""
        self.tabs.held_until = -inf
        self._notify()

    def handle_browser_gone(self) -> None:
        """Handle the browser's exit: every page is gone."""
        self.tabs.has_browser = False
        self.tabs.owners.reconnected(self._numbers, ())
        self.calls.handle_browser_gone()
        if self._connection is not None:  # its socket may close later, or much later
            self._connection.start_close(GOING_AWAY, "the browser has exited")
            self.handle_disconnected(self._connection)
        self._notify()

    async def ensure_browser(self) -> None:
        """Launch the browser if it was closed, and may be launched again.

        Raises:
            ChainError: It did not start.
        """
        if self.relaunch_browser is not None:
            await self.relaunch_browser()

    def handle_browser(self) -> None:
        """Handle a new browser, whose extension will connect."""
        self.tabs.has_browser = True
        self.relaunch_browser = None

    def disconnect(self, code: int, reason: str) -> None:
        """Close the extension's connection; it reconnects by itself."""
        if self._connection is not None:
            self._connection.start_close(code, reason)

    async def remove_extension(self, reason: str) -> bool:
        """Uninstall the extension from its browser, and return whether it is gone."""
        if self._connection is None:
            return False
        params = protocol.RemoveParams(reason=reason)
        self._connection.send(protocol.ExtensionRemove(params=params))
        with anyio.move_on_after(REMOVED_WITHIN):
            while self.connected:
                await self._changes.next().wait()
        return not self.connected

    # --- the connection ---

    def accepts(self, subprotocols: Sequence[str]) -> bool:
        """Return whether one of the offered subprotocols carries our secret."""
        return offers_secret(subprotocols, self._secret)

    def knows(self, secret: str) -> bool:
        """Return whether a secret is that of the extension, for requests of its own pages."""
        return secrets_match(secret, self._secret)

    async def serve(self, socket: Socket) -> None:
        """Serve one accepted connection until it ends."""
        await serve_connection(
            self._wrap_socket(socket), lambda _: self, message_limit=self.message_limit
        )

    async def read(self, connection: Connection, hello: protocol.Hello) -> None:
        """Handle an extension's messages after its hello; its connection replaces any other."""
        self._greet(connection, hello)
        while True:
            message = await connection.receive()
            if self._connection is connection:  # a replaced connection no longer counts
                self._handle(connection, message)

    async def send_activity(self, connection: Connection) -> None:
        """Send what the extension shows on its icon, until cancelled."""
        await self.activity.send(connection)

    def handle_disconnected(self, connection: Connection) -> None:
        """Handle the end of a connection."""
        if self._connection is connection:
            self._connection = None
            self.tabs.connection_changed(connected=False, now=anyio.current_time())
            self.calls.handle_disconnected()
            self._notify()

    def _greet(self, connection: Connection, hello: protocol.Hello) -> None:
        params = renumbered(hello.params, self.number)
        if self._connection is not None:
            self._connection.start_close(protocol.CLOSE_REPLACED, "replaced by a newer connection")
        now = anyio.current_time()
        # until a pong gives a better estimate
        connection.clock_offset = wall_clock() - params.time / MS
        self._connection = connection
        self.extension_version = params.extension_version
        self.browser_id = params.browser_id
        result = protocol.HelloResult(
            server_version=__version__, time=wall_clock() * MS, message_limit=self.message_limit
        )
        connection.send(protocol.ResultResponse(id=hello.id, result=result.model_dump()))
        self.plugin_sync.send(connection)
        for tab_id in self.tabs.owners.reconnected(self._numbers, params.tab_ids):
            self.tab_requests.close(tab_id)
        self.tabs.connection_changed(connected=True, now=now)
        self._handle_tabs(params)
        self.calls.handle_connected(connection, params)
        self._notify()

    def _handle_synced(self) -> None:
        everywhere = (each for each in self.plugin_sync.problems if each.tab_id == 0)
        self.tabs.refused = {each.plugin: each.message for each in everywhere}
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
            case protocol.ToolStopped(params=params):
                self.calls.timed_out.handle_stopped(params)
            case protocol.ToolStamps(params=params):
                self.calls.handle_stamps(connection, params)
            case protocol.TabsChanged(params=params) | (protocol.TabsParams() as params):
                params = renumbered(params, self.number)
                connection.keep_parts_of(each.document_id for each in params.documents)
                self._handle_tabs(params)
                self.calls.handle_tabs(params)
                self._notify()
            case protocol.OpenedTab(tab_id=tab_id):  # before anything is reported of its page
                self.tabs.owners.add(self._numbers[tab_id], None)
            case protocol.ClosedTab(tab_id=tab_id):
                self.tabs.owners.remove(self._numbers[tab_id])
                self._notify()
            case protocol.PageTools(params=params):
                if self.page_tools is not None and self.page_tools.add(params):
                    self._notify()
            case protocol.PluginLog(params=params):
                readable = self._with_source_lines(params)
                self.on_log(readable)
                self.calls.handle_log(readable)
            case protocol.Hello():
                connection.refuse("hello was already sent", request=message.id)
            case OtherHello():
                connection.refuse("hello was already sent")
            case _:
                pass  # an answer that is awaited elsewhere

    def _handle_tabs(self, params: protocol.HelloParams | protocol.TabsParams) -> None:
        self.tabs.owners.reported(self._numbers, params.tab_ids)
        self.tabs.update(params.documents, anyio.current_time(), loading=params.loading)
        if self.page_tools is not None:
            self.page_tools.update(params.documents, params.loading)

    def _with_source_lines(self, params: protocol.LogParams) -> protocol.LogParams:
        entries = [
            each.model_copy(update={"message": self.read_positions(each.message)})
            for each in params.entries
        ]
        return params.model_copy(update={"entries": entries})

    def _notify(self) -> None:
        self._changes.notify()
        self.on_change()

    # --- where a call runs ---

    async def _place(self, placement: Placement) -> protocol.DocumentState:
        step = partial(placement.step, self.tabs)
        while True:
            found: protocol.DocumentState | QueryTabs = await self._changes.decide(step)
            if isinstance(found, protocol.DocumentState):
                return found
            await self.tab_requests.query(found.plugin)


def _log_plugin(params: protocol.LogParams) -> None:
    log = plugin_logger(params.plugin)
    for entry in params.entries:
        level = logging.getLevelNamesMapping()[entry.level.upper()]
        # A page wrote these, so no control character may reach a terminal.
        log.log(level, "%s: %s", params.plugin, visible(entry.message))
    if params.dropped:
        log.warning(
            "%s: dropped %d log records, which came too fast", params.plugin, params.dropped
        )
