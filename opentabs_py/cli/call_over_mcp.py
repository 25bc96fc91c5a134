"""A call through an MCP client, as `opentabs call` and `opentabs demo` make it."""

import time
from collections.abc import Callable
from typing import Any

from opentabs_py import __version__, stacks
from opentabs_py.core import codes
from opentabs_py.errors import ChainError, ErrorDetail

# The SDK's client imports the last one when it validates a result.
CLIENT_MODULES = ("mcp.client", "mcp.client.streamable_http", "jsonschema.validators")


async def call_over_mcp(
    url: str,
    tool: str,
    arguments: dict[str, Any],
    progress_callback: Callable[[float, float | None, str | None], None],
    *,
    keeps_streams: bool = False,
) -> tuple[dict[str, Any], str | None]:
    """Call a tool through a real MCP client over Streamable HTTP.

    Args:
        url: The server's.
        tool: The tool's name.
        arguments: Its arguments.
        progress_callback: Called with each progress notification.
        keeps_streams: Whether the tool's streams outlive the server.

    Returns:
        The outcome, as `calling.outcome` describes it, and which side failed.
    """
    from opentabs_py.server.mcp.sdk_loading import load_sdk

    await load_sdk(*CLIENT_MODULES)
    from mcp.client import Client
    from mcp.types import Implementation

    from opentabs_py.calling.streams import STREAMS_META_KEY
    from opentabs_py.cli.terminal import warn
    from opentabs_py.client import over_http
    from opentabs_py.python_tools.values import describe_stream
    from opentabs_py.server.mcp.results import outcome_document

    reports: list[dict[str, Any]] = []
    began = time.perf_counter()

    # The SDK passes these as keyword arguments.
    async def note(progress: float, total: float | None, message: str | None) -> None:
        at = round(time.perf_counter() - began, 4)
        reports.append({"progress": progress, "total": total, "message": message, "at": at})
        progress_callback(progress, total, message)

    try:
        info = Implementation(name="opentabs call", version=__version__)
        async with Client(over_http(url), client_info=info) as client:
            # The client validates the result, and would otherwise request the schema afterwards.
            await client.list_tools()
            began = time.perf_counter()
            result = await client.call_tool(tool, arguments, progress_callback=note)
            seconds = time.perf_counter() - began
    except Exception as error:
        why = stacks.innermost(error)
        message = f"The MCP client gave up: {why}. The tool may have run."
        raise ChainError(ErrorDetail(codes.CLIENT_FAILED, message, category="chain")) from error
    for stream in () if keeps_streams else (result.meta or {}).get(STREAMS_META_KEY, ()):
        how_to_read = describe_stream(stream["id"], stream["name"])
        result.content = [each for each in result.content if each != how_to_read]
        warn(
            f"The stream {stream['name']} ends with this command. To follow it, call the tool of a "
            "server that keeps running: opentabs start."
        )
    outcome, failed = outcome_document(result, seconds)
    return {**outcome, "progress": reports}, failed
