"""What tests do to the chain, each in its own tab."""

import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import anyio
import pytest
from anyio.abc import Process, TaskGroup
from playwright.async_api import Page, Worker

from e2e.processes import extension_process
from e2e.waiting import PATIENT, PATIENT_MS
from opentabs_py.bridge.bridge import Bridge
from opentabs_py.core.limits import Limits
from opentabs_py.core.progress import ProgressReport
from opentabs_py.core.protocol import DocumentState
from opentabs_py.errors import CallError
from opentabs_py.session.session import OpenTabs

PROBE = Path(__file__).parent / "plugins" / "probe"
Kill = Literal["stop", "close", "sigkill"]
KILLS: tuple[Kill, ...] = get_args(Kill)
Advance = Callable[[float], Awaitable[None]]  # advances the clock of the calls' timers, in seconds
HOLD = {"until": "released"}  # a step of the probe that `Tab.release` ends


@dataclass
class Tab:
    """A tab in which the probe is ready."""

    page: Page
    id: int
    tabs: OpenTabs

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[ProgressReport], object] | None = None,
    ) -> Any:
        """Call a tool of the probe in this tab."""
        with anyio.fail_after(60):
            return await self.tabs.call(
                f"probe_{tool}",
                {"tabId": self.id, **(arguments or {})},
                limits=limits,
                on_progress=on_progress,
            )

    async def fail(
        self, tool: str, arguments: dict[str, Any] | None = None, **options: Any
    ) -> CallError:
        """Call a tool that must fail, and return the error."""
        with pytest.raises(CallError) as caught:
            await self.call(tool, arguments, **options)
        return caught.value

    async def refuse(self, tool: str, arguments: dict[str, Any] | None = None) -> CallError:
        """Call a tool of a page that is not ready; return the error without waiting."""
        state = self.tabs.internals.bridge.tabs
        grace, state.grace = state.grace, 0.0
        try:
            return await self.fail(tool, arguments)
        finally:
            state.grace = grace

    async def start(self, group: TaskGroup, steps: list[Any], key: str) -> "Running":
        """Start a call and wait until its tool runs in the page."""
        running = Running()
        group.start_soon(running.run, self, steps, key)
        await self.page.wait_for_function("key => key in probe.runs", arg=key)
        return running

    async def release(self, key: str) -> None:
        """Let a call that waits at `HOLD` continue."""
        await self.page.evaluate("key => { probe.released[key] = true }", key)

    async def kill_worker(self, how: Kill = "stop") -> None:
        """Stop the service worker as Chrome may at any time, or kill its process."""
        if how == "sigkill":
            process = extension_process(self.tabs.extension_dir)
            if process is not None:  # otherwise the chain has not recovered from the last kill
                os.kill(process, signal.SIGKILL)
            return
        cdp = await self.page.context.new_cdp_session(self.page)
        if how == "stop":
            await cdp.send("ServiceWorker.enable")
            await cdp.send("ServiceWorker.stopAllWorkers")
        else:
            targets = await cdp.send("Target.getTargets")
            for target in targets["targetInfos"]:
                ours = target["url"].startswith(self.tabs.internals.bridge.origin)
                if ours and target["type"] == "service_worker":
                    await cdp.send("Target.closeTarget", {"targetId": target["targetId"]})
        await cdp.detach()


@dataclass
class Running:
    """A running call, and how it ended."""

    value: Any = None
    error: CallError | None = None
    reports: list[ProgressReport] = field(default_factory=list[ProgressReport])
    reported: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    seconds: float = 0.0

    async def run(self, tab: Tab, steps: list[Any], key: str) -> None:
        began = anyio.current_time()
        arguments = {"tabId": tab.id, "key": key, "steps": steps, "result": key}
        try:
            self.value = await tab.tabs.call("probe_run", arguments, on_progress=self.take)
        except CallError as error:
            self.error = error
        self.seconds = anyio.current_time() - began
        self.ended.set()

    def take(self, report: ProgressReport) -> None:
        self.reports.append(report)
        self.reported.set()

    async def wait_for_report(self) -> None:
        with anyio.fail_after(PATIENT):
            await self.reported.wait()

    async def wait(self) -> "Running":
        with anyio.fail_after(PATIENT):
            await self.ended.wait()
        return self


async def wait_for_document(
    tabs: OpenTabs, url: str, readiness: str = "ready", *, but: str | None = None
) -> DocumentState:
    """Wait until there is a document with that URL and the probe in that state."""
    with anyio.fail_after(PATIENT):
        while True:
            changed = tabs.internals.bridge.changed()
            for document in tabs.internals.bridge.tabs.documents:
                state = document.plugins.get("probe")
                if (
                    document.url == url
                    and document.document_id != but
                    and state is not None
                    and state.readiness == readiness
                ):
                    return document
            await changed.wait()


@asynccontextmanager
async def another_worker(bridge: Bridge) -> AsyncGenerator[None]:
    """Wait at the end until a different service worker than at the beginning is connected."""
    before = bridge.calls.boot_id
    yield
    with anyio.fail_after(PATIENT):
        while bridge.calls.boot_id in (before, None):
            await bridge.changed().wait()


async def extension_worker(tabs: OpenTabs) -> Worker:
    """Return the extension's service worker; Playwright may notice it after the server."""
    context, ours = tabs.context, tabs.internals.bridge.origin
    if workers := [each for each in context.service_workers if each.url.startswith(ours)]:
        return workers[-1]  # the one before it may not have been noticed to be gone
    return await context.wait_for_event("serviceworker", timeout=PATIENT_MS)


async def drop_connection(bridge: Bridge) -> None:
    """Close the extension's connection; it soon opens another."""
    bridge.disconnect(4999, "a test drops it")
    with anyio.fail_after(PATIENT):
        while bridge.connected:
            await bridge.changed().wait()


async def reconnect(bridge: Bridge) -> None:
    """Close the extension's connection, and wait for its next."""
    await drop_connection(bridge)
    with anyio.fail_after(PATIENT):
        await bridge.wait_connected()


async def wait_until_settled(tabs: OpenTabs) -> None:
    """Wait until all results are settled in their pages too, shortly after they arrived."""
    with anyio.fail_after(PATIENT):
        while tabs.internals.bridge.calls.dispatch.has_settled:  # noqa: ASYNC110 (a timer removes them)
            await anyio.sleep(0.01)


async def mcp_url(server: Process) -> str:
    """Wait until a server prints its address."""
    assert server.stderr is not None
    said = ""
    with anyio.fail_after(PATIENT):
        while "MCP at " not in said or not said.endswith("\n"):
            said += (await server.stderr.receive()).decode()
    return said.partition("MCP at ")[2].split()[0]
