"""Two tools with which any client can read streams and end them."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import anyio
from pydantic import Field

from opentabs_py.calling.streams import STREAM_URI
from opentabs_py.python_tools.declare import tool
from opentabs_py.python_tools.run import current_run
from opentabs_py.python_tools.stream import Stream, Streams

LONGEST_WAIT: Final = 25.0  # s; most clients wait 60 for a silent call, and a few 30


def stream_tools(streams: Streams) -> list[Callable[..., Any]]:
    """Return the two tools for a server's streams."""

    def find(stream_id: str) -> Stream:
        run = current_run.get()
        return streams.find(stream_id, None if run is None else run.client)

    @tool(
        title="Read a stream",
        idle=60.0,
        ceiling=60.0,
        annotations={"readOnlyHint": True, "openWorldHint": False},
    )
    async def stream_read(
        id: str,  # noqa: A002 (what clients call it)
        after: Annotated[int, Field(ge=0)] = 0,
        wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT)] = 0,
    ) -> dict[str, Any]:
        """Read the updates of a stream that a tool opened.

        Call it again with `after` set to the `next` of the last answer, until both `open` and
        `more` are false.

        Args:
            id: The stream's id from the tool's result: the part after stream://.
            after: The number of the last update that you have.
            wait_seconds: How long to wait for an update, if there is none yet.
        """
        stream = find(id.removeprefix(STREAM_URI))
        if wait_seconds:
            with anyio.move_on_after(wait_seconds):
                await stream.wait_past(after)
        return streams.describe(stream, after)

    @tool(title="End a stream", annotations={"openWorldHint": False})
    async def stream_stop(id: str) -> dict[str, Any]:  # noqa: A002
        """End a stream that a tool opened; its updates can still be read for a while.

        Args:
            id: The stream's id from the tool's result: the part after stream://.
        """
        stream = find(id.removeprefix(STREAM_URI))
        stream.end("its client ended it")
        return streams.describe(stream, stream.count)

    return [stream_read, stream_stop]
