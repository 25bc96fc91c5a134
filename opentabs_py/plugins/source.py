"""Watching what a plugin is built from."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint
from anyio.streams.memory import MemoryObjectReceiveStream
from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType]

_QUIET = 20  # ms without a change, after which what was changed is told
_AT_MOST = 100  # ms; the same while changes go on
_NO_SOURCE = frozenset({"dist", "node_modules", "__pycache__", "test-results"})


@asynccontextmanager
async def watch_source(directory: Path) -> AsyncGenerator[MemoryObjectReceiveStream[None]]:
    """Give a stream with an item for each change of a plugin's source from now on.

    Changes that come while nobody reads are one item.
    """
    root = Path(await anyio.Path(directory).resolve())
    send, receive = anyio.create_memory_object_stream[None](1)

    def is_source(_change: Change, path: str) -> bool:
        parts = Path(path).relative_to(root).parts
        return not any(part in _NO_SOURCE or part.startswith(".") for part in parts)

    async def watch() -> None:
        async for _ in awatch(
            root,
            watch_filter=is_source,
            debounce=_AT_MOST,
            step=_QUIET,
            ignore_permission_denied=True,
        ):
            if send.statistics().current_buffer_used == 0:
                send.send_nowait(None)

    async with send, receive, anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await checkpoint()  # it watches before it waits for the first change
        yield receive
        tasks.cancel_scope.cancel()
