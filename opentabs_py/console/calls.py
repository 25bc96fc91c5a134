"""Calls that the user makes in the console."""

from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opentabs_py.calling.call import CallOrigin, new_call_id
from opentabs_py.core.progress import Pace
from opentabs_py.server.call_stream import CallStream
from opentabs_py.server.http.json_requests import BadRequestError, Body, read, refuse
from opentabs_py.server.tools.tool_calls import ToolCalls

NAME: Final = "console"  # as the client that makes a call, and as what allows it


class CallBody(Body):
    """A call to make.

    Attributes:
        tool: The tool's MCP name.
        arguments: Its arguments.
    """

    tool: str
    arguments: dict[str, Any]


class CallApp:
    """Makes a call, and answers with what happens until it ends; the page may go away to cancel it.

    A class, because it streams by itself.

    Args:
        calls: Makes it.
        pace: How often progress is sent.
        limit: The longest request, in bytes.
    """

    def __init__(self, calls: ToolCalls, pace: Pace, *, limit: int) -> None:
        self._calls = calls
        self._pace = pace
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await read(Request(scope, receive), CallBody, limit=self._limit)
        except BadRequestError as error:
            await refuse(str(error), error.status)(scope, receive, send)
            return
        stream, call_id = CallStream(send, self._pace), new_call_id()
        stream.send_call_id(call_id)
        call = partial(
            stream.call,
            self._calls,
            body.tool,
            body.arguments,
            call_id=call_id,
            origin=CallOrigin(name=NAME, allowed_by=NAME),
        )
        await stream.serve(receive, call)
