"""Workarounds for places where the MCP SDK deviates from the specification."""

from collections.abc import Callable, Mapping
from typing import Any

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import PROTOCOL_VERSION_META_KEY
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.types import Scope

from opentabs_py.calling.streams import STREAM_URI, stream_address
from opentabs_py.core.text import shorten


def progress_token(ctx: ServerRequestContext[Any]) -> types.ProgressToken | None:
    """Return the token of a call's progress.

    Tokens are strings or integers (MCP, Progress). Here the SDK reads true as 1, which may be the
    token of another call, but where it sends progress, as no token; not reported upstream yet.

    Raises:
        MCPError: It is a boolean; the SDK itself rejects other types.
    """
    match ctx.params:
        case {"_meta": {"progressToken": bool()}}:
            raise MCPError(
                types.INVALID_PARAMS,
                "The progressToken must be a string or an integer, not a boolean.",
            )
        case _:
            return (ctx.meta or {}).get("progress_token")


def is_routed_by_session(headers: Mapping[str, str]) -> bool:
    """Return whether the SDK serves a request as initialize-era, judging by its header alone."""
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    return version is None or version in HANDSHAKE_PROTOCOL_VERSIONS


def at_end_of_session(ctx: ServerRequestContext[Any], call: Callable[[], None]) -> None:
    """Call a function when the session of a request ends, however it ends.

    The SDK says that handlers may push this to their connection's `exit_stack`, but gives them only
    the session, which does not show its connection.
    """
    connection = ctx.session._connection  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
    connection.exit_stack.callback(call)


def without_resumption(scope: Scope) -> Scope:
    """Return a request without the event after which its client wants to continue a stream.

    Events here have no ids and are not kept, so a new stream is all that it can have. The SDK sends
    no response at all; not reported upstream yet.
    """
    headers = [each for each in scope["headers"] if each[0] != b"last-event-id"]
    return {**scope, "headers": headers}


def header_mismatch(headers: Mapping[str, str], message: Any) -> str | None:
    """Return how an initialize-era request's header contradicts its body; None if it does not.

    A version named in a body must equal the header's (MCP 2026-07-28, Streamable HTTP). The SDK
    compares them only if the header is of that era, and otherwise ignores the body:
    https://github.com/modelcontextprotocol/python-sdk/issues/2618.
    """
    match message:
        case {"params": {"_meta": {**meta}}} if PROTOCOL_VERSION_META_KEY in meta:
            named = meta[PROTOCOL_VERSION_META_KEY]
        case _:
            return None
    version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
    if version == named:
        return None
    return (
        f"The {MCP_PROTOCOL_VERSION_HEADER} header is {version or 'missing'}, but the body's _meta "
        f"says {shorten(str(named))}. Send the same version in both."
    )


def narrow(
    asked: types.SubscriptionFilter, *, tools_change: bool, has_streams: bool
) -> types.SubscriptionFilter:
    """Return the supported part of a filter; the SDK acknowledges everything requested.

    Streams are named by the URI with which their changes are notified, without any `?after=N`. An
    acknowledgement must omit what the server does not support (MCP 2026-07-28, Subscriptions):
    https://github.com/modelcontextprotocol/python-sdk/issues/2901.
    """
    uris = asked.resource_subscriptions or ()
    streams = dict.fromkeys(stream_address(uri) for uri in uris if uri.startswith(STREAM_URI))
    return types.SubscriptionFilter(
        tools_list_changed=asked.tools_list_changed if tools_change else None,
        resource_subscriptions=[*streams] if has_streams else None,
    )


def declare_changes(
    capabilities: types.ServerCapabilities, *, tools_change: bool, has_streams: bool
) -> None:
    """Declare only the notifications we send; the SDK declares them for every list it serves.

    https://github.com/modelcontextprotocol/python-sdk/issues/2896.
    """
    if capabilities.tools is not None:
        capabilities.tools.list_changed = tools_change
    if capabilities.resources is not None:
        capabilities.resources.list_changed = False
        capabilities.resources.subscribe = has_streams
