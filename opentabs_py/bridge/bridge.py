"""The shell between the dispatch core and the extension.

It feeds incoming messages to the core, sends what the core wants sent, and wakes the core at
its next deadline. It decides nothing about a call's life.
"""

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

import anyio
from anyio.abc import TaskStatus

from opentabs_py.bridge.link import Connection, Event, Socket, SocketClosedError
from opentabs_py.calling.clock import Clock, SystemClock, wall_clock
from opentabs_py.core import dispatch, failures, protocol
from opentabs_py.core.dispatch import DEFAULT_LIMITS, CallRequest, Limits
from opentabs_py.core.instances import Instance
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.tabs import Tabs, Wait
from opentabs_py.core.trace.recorder import CallRecording, Instant
from opentabs_py.errors import CallError, ChainError

logger = logging.getLogger(__name__)

QUERY_WITHIN = 2.0  # s; an answer takes a few ms
SYNC_WITHIN = 2.0  # s; an answer takes tens of ms, but a hanging page prevents it
# s; receipts may wait this long, so that they are batched and do not delay the next call
RECEIPTS_AFTER = 0.05
REDIRECTS = 3  # pages that may navigate away, one after another, before a call gives up
HELLO_WITHIN = 10.0  # s; the extension sends it as soon as the socket is open
SUBPROTOCOL = "opentabs"
_PRESENTED = "opentabs.secret."


@dataclass(frozen=True, slots=True)
class TabCall:
    """A call as the caller requests it; the bridge chooses the tab.

    Attributes:
        patterns: Match patterns of the plugin, or of the instance, for the error when no tab is
            open.
        instance: The instance of the plugin's site to use, if there are several.
        on_progress: Called with each batch of reports, in order. Must not block or raise.
        on_log: Called with what the plugin logs in that page meanwhile. Must not block or raise.
        on_sent: Called once the call is on its way to its page. Must not block or raise.
        recording: Records when the call passes each hop, and changes of the connection. Without
            it the call is not traced, which costs nothing.
    """

    plugin: str
    tool: str
    arguments: Mapping[str, Any]
    tab_id: int | None = None
    patterns: Sequence[str] = ()
    instance: Instance | None = None
    limits: Limits = DEFAULT_LIMITS
    on_progress: Callable[[Sequence[ProgressReport]], None] | None = None
    on_log: Callable[[Sequence[protocol.LogEntry]], None] | None = None
    on_sent: Callable[[], None] | None = None
    recording: CallRecording | None = None


@dataclass(slots=True)
class _Waiter:
    call: TabCall
    document_id: str
    outcome: asyncio.Future[dispatch.Succeeded | dispatch.Failed]  # much cheaper than an event


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
        bring_browser: Launches a browser if there is none and a call needs one.
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
        self.tabs = Tabs()
        self.dispatch = dispatch.Dispatch()
        self.message_limit = message_limit
        self.extension_version: str | None = None
        self.bring_browser: Callable[[], Awaitable[None]] | None = None
        self.plugin_faults: list[protocol.PluginFault] = []
        self.on_log: Callable[[protocol.LogParams], None] = _log_plugin
        self._wrap_socket = wrap_socket
        self._secret = secret
        self._version = version
        self._plugins: list[protocol.PluginSpec] = []
        self._waiters: dict[str, _Waiter] = {}
        self._connection: Connection | None = None
        self._boot_id: str | None = None  # of the connected service worker
        self._synced = False
        self._syncs = 0
        self._receipts_due = False
        self._changed = anyio.Event()
        self._sleeping_until = inf
        self._deadline_moved = anyio.Event()

    # --- for callers ---

    @property
    def connected(self) -> bool:
        """Whether an extension has said hello and is still connected."""
        return self._connection is not None

    async def call(self, call: TabCall) -> Any:
        """Run a tool in a tab and return its JSON value.

        Cancelling this coroutine stops the tool: MCP 2025-11-25, "Cancellation".

        Raises:
            CallTimeoutError: No progress for `limits.idle` seconds, or no result after
                `limits.ceiling`.
            ChainError: No extension, no tab, or the page went away.
            ToolFailedError: The tool threw.
        """
        if self.bring_browser is not None:
            await self.bring_browser()
        for _ in range(REDIRECTS):
            document = await self._choose(call)
            try:
                return await self._call_in(document, call)
            except ChainError as error:
                # The page navigated away, or the user signed out: the tool did not run.
                if error.detail.code not in failures.CALL_AGAIN:
                    raise
                await self._query_tabs()
        return await self._call_in(await self._choose(call), call)

    async def _call_in(self, document: protocol.DocumentState, call: TabCall) -> Any:
        request = CallRequest(
            call_id=secrets.token_hex(16),
            document_id=document.document_id,
            tab_id=document.tab_id,
            plugin=call.plugin,
            tool=call.tool,
            arguments=call.arguments,
            limits=call.limits,
            trace=call.recording is not None,
        )
        outcome = asyncio.get_running_loop().create_future()
        self._waiters[request.call_id] = _Waiter(call, document.document_id, outcome)
        if call.recording is not None:
            call.recording.dispatch(request.call_id, document, self._boot_id, self.instant())
            if self._connection is not None:
                self._connection.ping()
        try:
            self.dispatch.call(request, self.clock.now())
            self._turn()
            if call.on_sent is not None:
                call.on_sent()
            if self._connection is not None:
                await self._connection.flush()
            ended = await outcome
        except anyio.get_cancelled_exc_class():
            self.dispatch.cancel(request.call_id, "the client cancelled it")
            self._turn()
            raise
        finally:
            del self._waiters[request.call_id]
        if isinstance(ended, dispatch.Failed):
            raise ended.error
        return ended.value

    async def wait_connected(self) -> None:
        """Wait until an extension has said hello and has all plugins."""
        while self._connection is None or not self._synced:
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
        return [plugin.name for plugin in self._plugins]

    def changed(self) -> anyio.Event:
        """Return an event that is set at the next change of connection, tabs or plugins."""
        return self._changed

    async def sync_plugins(self, plugins: Sequence[protocol.PluginSpec]) -> None:
        """Send the list of plugins to the extension, now and at every hello.

        Waits until it has injected them into the open documents, except hanging ones.
        """
        self._plugins = list(plugins)
        connection = self._connection
        if connection is None:
            return
        self._send_sync(connection)
        with anyio.move_on_after(SYNC_WITHIN):
            while not self._synced and self._connection is connection:
                await self._changed.wait()

    def handle_browser_gone(self) -> None:
        """Handle the browser's exit: every page is gone, and no call will be answered."""
        self.tabs.has_browser = False
        self.dispatch.documents_changed([], [], self.clock.now())
        self._turn()

    def handle_browser(self) -> None:
        """Handle a new browser, whose extension will connect."""
        self.tabs.has_browser = True
        self.bring_browser = None

    async def settle(self) -> None:
        """Wait until every caller whose call has ended has received the outcome."""
        while any(waiter.outcome.done() for waiter in self._waiters.values()):
            await anyio.lowlevel.checkpoint()

    async def wait_idle(self) -> None:
        """Wait until no call is running in a page."""
        while running := [each.outcome for each in self._waiters.values()]:
            await asyncio.wait(running)
            await self.settle()

    def instant(self) -> Instant:
        """Return the current time, for a recording."""
        return Instant(wall=wall_clock(), steady=self.clock.now())

    def disconnect(self, code: int, reason: str) -> None:
        """Close the extension's connection; it reconnects by itself."""
        if self._connection is not None:
            self._connection.start_close(code, reason)

    # --- the two tasks ---

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Wake the core at its deadlines, until cancelled."""
        task_status.started()
        while True:
            deadline = self.dispatch.next_deadline()
            self._sleeping_until = inf if deadline is None else deadline
            self._deadline_moved = anyio.Event()
            await self.clock.wait(self._deadline_moved, self._sleeping_until)
            self.dispatch.handle_timer(self.clock.now())
            self._turn()

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
            if self._connection is connection:
                self._connection = None
                self.dispatch.connection_lost()
                self.tabs.connection_changed(connected=False, now=anyio.current_time())
                self._turn()
                self._link_changed(None)
                self._tabs_changed()

    def accepts(self, subprotocols: Sequence[str]) -> bool:
        """Return whether one of the offered subprotocols carries our secret."""
        wanted = f"{_PRESENTED}{self._secret}".encode()
        return any(hmac.compare_digest(offered.encode(), wanted) for offered in subprotocols)

    # --- what arrives ---

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
                    self._turn()

    def _greet(self, connection: Connection, hello: protocol.Hello) -> None:
        params = hello.params
        if self._connection is not None:
            self._connection.start_close(protocol.CLOSE_REPLACED, "replaced by a newer connection")
            self.dispatch.connection_lost()
        now = anyio.current_time()
        connection.clock_offset = wall_clock() - params.time  # until a pong gives a better estimate
        self._connection = connection
        self.extension_version = params.extension_version
        self._link_changed(params.boot_id)
        result = protocol.HelloResult(
            server_version=self._version, time=wall_clock(), message_limit=self.message_limit
        )
        connection.send(protocol.Response(id=hello.id, result=result.model_dump()))
        connection.ping()
        self._send_sync(connection)
        self.tabs.connection_changed(connected=True, now=now)
        self.tabs.update(params.documents, now, loading=params.loading)
        self.dispatch.connection_resumed(
            params.documents,
            params.tab_ids,
            self.clock.now(),
            crashed=params.crashed,
            fresh=params.fresh,
        )
        self._turn()
        self._tabs_changed()

    def _handle(self, connection: Connection, message: Event) -> None:
        match message:
            case protocol.ToolProgress(params=params):
                if params.dropped and (recording := self._recording(params.call_id)) is not None:
                    recording.record_dropped(params.dropped)
                self.dispatch.receive(message, self.clock.now())
            case protocol.ToolLost():
                self.dispatch.receive(message, self.clock.now())
            case protocol.ToolResult(params=params) | protocol.ToolErrored(params=params):
                self._stamp(connection, params.call_id, params.stamps or {}, arrived=True)
                self.dispatch.receive(message, self.clock.now())
            case protocol.ToolStamps(params=params):
                self._stamp(connection, params.call_id, params.stamps)
            case protocol.TabsChanged(params=params):
                self._handle_tabs(params)
            case protocol.PluginLog(params=params):
                self._handle_log(params)
            case protocol.Hello():
                connection.refuse("hello was already sent", request=message.id)

    def _handle_log(self, params: protocol.LogParams) -> None:
        self.on_log(params)
        for waiter in self._waiters.values():
            call = waiter.call
            in_page = (waiter.document_id, call.plugin) == (params.document_id, params.plugin)
            if in_page and call.on_log is not None:
                call.on_log(params.entries)

    def _stamp(
        self,
        connection: Connection,
        call_id: str,
        stamps: Mapping[str, float],
        *,
        arrived: bool = False,
    ) -> None:
        recording = self._recording(call_id)
        if recording is None:
            return
        for name, at in stamps.items():
            recording.stamp(name, at + connection.clock_offset)
        if arrived:
            recording.stamp("server.received", wall_clock())

    def _recording(self, call_id: str) -> CallRecording | None:
        waiter = self._waiters.get(call_id)
        return None if waiter is None else waiter.call.recording

    def _link_changed(self, boot_id: str | None) -> None:
        self._boot_id = boot_id
        for waiter in self._waiters.values():
            if waiter.call.recording is not None:
                waiter.call.recording.record_link(boot_id, self.instant())

    def _send_sync(self, connection: Connection) -> None:
        self._synced = False
        self._syncs += 1
        params = protocol.SyncParams(plugins=self._plugins)
        connection.request(
            lambda number: protocol.PluginsSync(id=number, params=params),
            protocol.SyncResult,
            partial(self._handle_sync_result, self._syncs),
        )

    def _handle_sync_result(self, sync: int, result: protocol.SyncResult | None) -> None:
        if sync != self._syncs:
            return  # a newer list is on its way
        # An error was logged; even without its plugins, the extension counts as connected.
        told = {(fault.plugin, fault.message) for fault in self.plugin_faults}
        self.plugin_faults = [] if result is None else result.faults
        for fault in self.plugin_faults:
            if (fault.plugin, fault.message) not in told:
                logger.warning("Plugin %s: %s", fault.plugin, fault.message)
        self._synced = True
        self._tabs_changed()

    # --- between core and callers ---

    def _turn(self) -> None:
        """Carry out what the core decided; call it after every input, before the next await."""
        # Callers first: they wait for the result, but nobody waits for its acknowledgement.
        for event in self.dispatch.drain_events():
            waiter = self._waiters.get(event.call_id)
            if waiter is None:
                continue
            if isinstance(event, dispatch.Progressed):
                if waiter.call.on_progress is not None:
                    waiter.call.on_progress(event.reports)
            else:
                if not waiter.outcome.done():  # cancelled, but not yet removed
                    waiter.outcome.set_result(event)
        connection = self._connection
        for message in self.dispatch.drain_messages():
            if connection is None:
                continue  # these are repeated, or obsolete, at the next hello
            if isinstance(message, protocol.ToolDispatch) and message.params.trace:
                recording = self._recording(message.params.call_id)
                if recording is not None:
                    recording.stamp("server.sent", wall_clock())
            connection.send(message)
        if self.dispatch.has_receipts and not self._receipts_due:
            self._receipts_due = True
            asyncio.get_running_loop().call_later(RECEIPTS_AFTER, self._send_receipts)
        deadline = self.dispatch.next_deadline()
        if deadline is not None and deadline < self._sleeping_until:
            self._deadline_moved.set()

    def _send_receipts(self) -> None:
        self._receipts_due = False
        receipts = self.dispatch.drain_receipts()
        if self._connection is not None:
            for receipt in receipts:
                self._connection.send(receipt)

    def _handle_tabs(self, state: protocol.TabsParams) -> None:
        self.tabs.update(state.documents, anyio.current_time(), loading=state.loading)
        self.dispatch.documents_changed(
            state.documents, state.tab_ids, self.clock.now(), crashed=state.crashed
        )
        self._tabs_changed()

    async def _query_tabs(self, plugin: str | None = None) -> None:
        """Ask the extension for the state of its tabs; a page may have just been opened.

        With a plugin, its pages are first asked whether it is ready; the user may have signed in.
        """
        connection = self._connection
        if connection is None:
            return
        answered = anyio.Event()

        def handle(state: protocol.TabsParams | None) -> None:
            if state is not None and self._connection is connection:
                self._handle_tabs(state)
            answered.set()

        connection.request(
            lambda number: protocol.TabsQuery(
                id=number, params=protocol.QueryParams(plugin=plugin)
            ),
            protocol.TabsParams,
            handle,
        )
        with anyio.move_on_after(QUERY_WITHIN):
            await answered.wait()

    async def _choose(self, call: TabCall) -> protocol.DocumentState:
        asked = False
        while True:
            changed = self._changed
            choice = self.tabs.choose(
                call.plugin,
                call.patterns,
                call.tab_id,
                anyio.current_time(),
                instance=call.instance,
            )
            match choice:
                case protocol.DocumentState():
                    return choice
                case CallError():
                    if asked or choice.detail.code not in ("TAB_NOT_FOUND", "TAB_NOT_READY"):
                        raise choice
                    asked = True
                    await self._query_tabs(call.plugin)
                case Wait(until=until):
                    with anyio.CancelScope(deadline=until):
                        await changed.wait()

    def _tabs_changed(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def _log_plugin(params: protocol.LogParams) -> None:
    for entry in params.entries:
        level = logging.getLevelNamesMapping()[entry.level.upper()]
        # A page wrote these, so no control character may reach a terminal.
        text = "".join(c if c.isprintable() else " " for c in entry.message)
        logging.getLogger(f"opentabs_py.plugin.{params.plugin}").log(
            level, "%s: %s", params.plugin, text
        )
