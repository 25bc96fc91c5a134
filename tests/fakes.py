"""A hand-written extension: what one end of its socket sends, the other receives."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

import anyio

from opentabs_py.bridge.bridge import Bridge
from opentabs_py.bridge.connection import SocketClosedError
from opentabs_py.bridge.pages import Pages
from opentabs_py.calling.call import ToolCall
from opentabs_py.calling.tool import Tool
from opentabs_py.consent.gate import Gate
from opentabs_py.core import failures
from opentabs_py.core.limits import Limits
from opentabs_py.core.plugins.manifest import PluginManifest
from opentabs_py.core.plugins.manifest_files import parse_plugin
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import PROTOCOL_VERSION, DocumentState
from opentabs_py.core.tabs.selection import Target
from opentabs_py.server.tools.registry import ToolRegistry
from opentabs_py.server.tools.tool_calls import ToolCalls
from tests.waiting import PATIENT

Json = dict[str, Any]
PAGE, OTHER_PAGE = "d" * 32, "e" * 32
TAB = 7


class FakeSocket:
    """One connection. The bridge has the `Socket`; the test has `say`, `hear` and `hang_up`."""

    def __init__(self) -> None:
        self._to_bridge, self._for_bridge = anyio.create_memory_object_stream[str](inf)
        self._to_test, self._for_test = anyio.create_memory_object_stream[str](inf)
        self.closed: tuple[int, str] | None = None
        self.is_stalled = False  # while the extension does not read
        self.heard: list[Json] = []

    # --- the bridge's end ---

    async def receive_text(self) -> str:
        try:
            return await self._for_bridge.receive()
        except anyio.EndOfStream:
            raise SocketClosedError from None

    async def send_text(self, data: str) -> None:
        if self.is_stalled:
            await anyio.sleep_forever()
        try:
            await self._to_test.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise SocketClosedError from None

    async def close(self, code: int, reason: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.closed = (code, reason)
        self._to_test.close()
        self._to_bridge.close()

    # --- the extension's end ---

    def say(self, message: Json | str) -> None:
        if isinstance(message, dict):
            message = json.dumps({"jsonrpc": "2.0", **message})
        self._to_bridge.send_nowait(message)

    async def hear(self, what: str) -> Json:
        """Wait for a message by its method, or for `result` or `error`; skip others."""
        with anyio.fail_after(PATIENT):
            while True:
                message: Json = json.loads(await self._for_test.receive())
                self.heard.append(message)
                if message.get("method") == what or ("method" not in message and what in message):
                    return message

    async def hear_frame(self) -> str:
        """Wait for the next frame, which may be a part of a message."""
        with anyio.fail_after(PATIENT):
            return await self._for_test.receive()

    async def hear_the_end(self) -> None:
        """Wait until the bridge has closed the connection."""
        with anyio.fail_after(PATIENT):
            async for text in self._for_test:
                self.heard.append(json.loads(text))

    def hang_up(self) -> None:
        self._to_bridge.close()
        self._for_test.close()

    def dispose(self) -> None:
        for stream in (self._to_bridge, self._for_bridge, self._to_test, self._for_test):
            stream.close()


Connect = Callable[[], FakeSocket]


@asynccontextmanager
async def running(bridge: Bridge) -> AsyncGenerator[Connect]:
    """Run a bridge; yield a function that opens a connection to it."""
    sockets: list[FakeSocket] = []
    try:
        async with anyio.create_task_group() as tasks:

            def connect() -> FakeSocket:
                sockets.append(FakeSocket())
                tasks.start_soon(bridge.serve, sockets[-1])
                return sockets[-1]

            await tasks.start(bridge.calls.run)
            yield connect
            tasks.cancel_scope.cancel()
    finally:
        for socket in sockets:
            socket.dispose()


def a_bridge() -> Bridge:
    return Bridge(secret="s" * 64, origin="chrome-extension://x")


async def greeted(connect: Connect, *documents: Json, tabs: list[int] | None = None) -> FakeSocket:
    """Connect and say hello; return the connection once the bridge has answered."""
    socket = connect()
    socket.say(hello(*documents, tabs=tabs))
    await socket.hear("result")
    return socket


# --- messages of an extension ---


def state(*documents: Json, tabs: list[int] | None = None) -> Json:
    return {"tabIds": [TAB] if tabs is None else tabs, "documents": list(documents)}


def hello(*documents: Json, tabs: list[int] | None = None, version: int = PROTOCOL_VERSION) -> Json:
    about: Json = {"protocolVersion": version, "extensionVersion": "9", "bootId": "b"}
    about |= {"browserId": "c" * 32, "browser": "C"}
    params = {**about, "time": 0, **state(*documents, tabs=tabs)}
    return {"method": "hello", "id": 1, "params": params}


def tabs_changed(*documents: Json, tabs: list[int] | None = None) -> Json:
    return {"method": "tabs.changed", "params": state(*documents, tabs=tabs)}


def a_document(*calls: str, readiness: str = "ready", plugin: str = "chat", **more: Any) -> Json:
    return {
        "documentId": PAGE,
        "tabId": TAB,
        "url": "https://chat.example/",
        "title": "",
        "active": True,
        "focused": True,
        "protected": True,
        "calls": list(calls),
        "plugins": {plugin: {"readiness": readiness}},
        **more,
    }


def about_call(method: str, call_id: str, **params: Any) -> Json:
    """Return a `tool.*` message from the page."""
    return {"method": method, "params": {"documentId": PAGE, "callId": call_id, **params}}


# --- plugins, and a bridge without a browser ---


def a_tool(name: str, **more: Any) -> Json:
    return {
        "name": name,
        "displayName": name.title(),
        "description": f"Does {name}.",
        "icon": "send",
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object"},
        **more,
    }


def package_json(name: str = "chat") -> str:
    about = {
        "displayName": name.title(),
        "description": "Reads and writes.",
        "urlPatterns": [f"https://{name}.example/*"],
    }
    package = {"name": f"opentabs-plugin-{name}", "version": "1.2.0", "opentabs": about}
    return json.dumps(package)


def tools_json(*tools: Json) -> str:
    return json.dumps({"sdkVersion": "0.1.0", "tools": tools})


def a_manifest(*tools: Json, name: str = "chat") -> PluginManifest:
    return parse_plugin(package_json(name), tools_json(*tools))


@dataclass(frozen=True, slots=True)
class Received:
    """A call that a bridge was asked to make."""

    target: Target
    tool: str
    call: ToolCall


def pages_of(*bridges: Bridge) -> Pages:
    """Return the pages of some browsers."""
    return Pages(bridges, clock=bridges[0].clock)


def tool_calls_of(
    pages: Pages,
    *,
    limits: Limits = Limits(),  # noqa: B008 (frozen)
    message_limit: int = 1_000_000,
    strict_output: bool = False,
    gate: Gate | None = None,
    built_in: Sequence[Tool] = (),
) -> ToolCalls:
    """Return the calls of a registry that has no tools yet."""
    registry = ToolRegistry(pages, message_limit=message_limit, gate=gate, built_in=built_in)
    return ToolCalls(registry, pages, limits=limits, strict_output=strict_output)


class FakeBridge(Bridge):
    """A bridge whose calls all end the same way: after `reports`, with `error` or with `value`."""

    def __init__(
        self,
        *,
        value: object = None,
        error: Exception | None = None,
        reports: Sequence[ProgressReport] = (),
    ) -> None:
        super().__init__(secret="s" * 64, origin="chrome-extension://x")
        self.received: list[Received] = []
        self.called = anyio.Event()
        self.cancelled = anyio.Event()
        self.hangs = False
        self.value, self._error, self._reports = value, error, reports
        self.pages = pages_of(self)

    async def call(self, target: Target, tool: str, call: ToolCall) -> object:
        self.received.append(Received(target, tool, call))
        self.called.set()
        call.notify_sent()
        for report in self._reports:
            call.notify_progress([report])
        try:
            await (anyio.sleep_forever() if self.hangs else anyio.lowlevel.checkpoint())
        except anyio.get_cancelled_exc_class():
            self.cancelled.set()
            raise
        if self._error is not None:
            raise self._error
        return self.value

    def notify_changed(self) -> None:
        """Notify all that wait for a change of tabs."""
        self._notify()


class SignedOut(FakeBridge):
    """A page in which the plugin is not ready until a user signs in."""

    is_signed_in = False

    def __init__(self) -> None:
        super().__init__(value={"sent": True})
        self.show("unavailable")

    async def call(self, target: Target, tool: str, call: ToolCall) -> object:
        if not self.is_signed_in:
            raise failures.not_ready("chat", "https://chat.example/", "isReady() is not true")
        return await super().call(target, tool, call)

    def sign_in(self, *, is_noticed: bool = True) -> None:
        self.is_signed_in = True
        if is_noticed:
            self.show("ready")

    def show(self, *readiness: str) -> None:
        """Report a tab for each of these, numbered from 1."""
        now = anyio.current_time()
        shown = [
            a_document(documentId=f"{tab:032x}", tabId=tab, title="Log in", readiness=each)
            for tab, each in enumerate(readiness, 1)
        ]
        self.tabs.connection_changed(connected=True, now=now)
        self.tabs.update([DocumentState.model_validate(each) for each in shown], now)
        self._notify()
