"""MCP clients of either era that are notified when the tool list changes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.waiting import PATIENT

CHANGED = "notifications/tools/list_changed"


@dataclass
class Hearing:
    """A connected client."""

    client: Client
    _changes: MemoryObjectReceiveStream[None]

    async def wait_for_change(self) -> None:
        """Wait for a notification that no earlier wait has consumed."""
        with anyio.fail_after(PATIENT):
            await self._changes.receive()

    @property
    def has_heard(self) -> bool:
        """Whether there is a notification that no wait has consumed."""
        return self._changes.statistics().current_buffer_used > 0

    async def tools(self) -> list[str]:
        """List the names of the tools that the server has now."""
        with anyio.fail_after(PATIENT):
            return [tool.name for tool in (await self.client.list_tools()).tools]


@asynccontextmanager
async def hearing(target: Any, mode: str) -> AsyncGenerator[Hearing]:
    """Connect a client to a server, its URL or its command, and subscribe it to changes."""
    told, changes = anyio.create_memory_object_stream[None](inf)

    async def note(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            await told.send(None)

    # In the initialize era, a client over HTTP opens its stream for notifications later.
    opened = anyio.Event()

    async def note_stream(response: httpx2.Response) -> None:
        if response.request.method == "GET":
            opened.set()

    http = httpx2.AsyncClient(event_hooks={"response": [note_stream]}, timeout=PATIENT)
    over_http = isinstance(target, str)
    if over_http:
        target = streamable_http_client(target, http_client=http)
    async with told, changes, http:
        if mode == "legacy":
            async with Client(target, mode="legacy", message_handler=note) as client:
                with anyio.fail_after(PATIENT):
                    if over_http:
                        await opened.wait()
                    await client.list_tools()  # answered after `initialized` has been read
                yield Hearing(client, changes)
            return
        async with (
            Client(target) as client,
            client.listen(tools_list_changed=True) as events,
            anyio.create_task_group() as tasks,
        ):

            async def listen() -> None:
                async for _ in events:
                    await told.send(None)

            tasks.start_soon(listen)
            yield Hearing(client, changes)
            tasks.cancel_scope.cancel()
