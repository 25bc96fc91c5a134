"""Two tools by which any client reads what streams say, and ends them."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import anyio
from pydantic import Field

from opentabs_py.tools.declare import Timeouts, tool
from opentabs_py.tools.run import current_run
from opentabs_py.tools.stream import Stream, Streams, describe

LONGEST_WAIT: Final = 25.0  # s; most clients wait 60 for a silent call, and a few 30


def stream_tools(streams: Streams) -> list[Callable[..., Any]]:
    """Give the two tools for the streams of a server."""

    def find(stream_id: str) -> Stream:
        run = current_run.get()
        return streams.find(stream_id, None if run is None else run.client)

    @tool(
        title="Read a stream",
        timeouts=Timeouts(idle=60.0, ceiling=60.0),
        annotations={"readOnlyHint": True, "openWorldHint": False},
    )
    async def stream_read(
        id: str,  # noqa: A002 (what clients call it)
        after: Annotated[int, Field(ge=0)] = 0,
        wait_seconds: Annotated[float, Field(ge=0, le=LONGEST_WAIT)] = 0,
    ) -> dict[str, Any]:
        """Read the updates of a stream that a tool has opened.

        Call it again with `after` set to the `next` of the last answer, until `open` is false and
        `more` is too.

        Args:
            id: As the result of the tool names it: what follows stream://.
            after: The number of the last update that you have.
            wait_seconds: How long to wait for an update, if there is none yet.
        """
        stream = find(id.removeprefix("stream://"))
        if wait_seconds:
            with anyio.move_on_after(wait_seconds):
                await stream.wait_past(after)
        return describe(stream, after)

    @tool(title="End a stream", annotations={"openWorldHint": False})
    async def stream_stop(id: str) -> dict[str, Any]:  # noqa: A002
        """End a stream that a tool has opened; what it has said can still be read for a while.

        Args:
            id: As the result of the tool names it: what follows stream://.
        """
        stream = find(id.removeprefix("stream://"))
        stream.end("its client ended it")
        return describe(stream, stream.count)

    return [stream_read, stream_stop]
