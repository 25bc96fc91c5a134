"""What the MCP SDK does otherwise than the specification says, put right in front of it."""

from mcp import types


def narrow(
    asked: types.SubscriptionFilter, *, tools_change: bool, has_streams: bool
) -> types.SubscriptionFilter:
    """Return what of a filter is served: the SDK acknowledges whatever it is asked for.

    An acknowledgement leaves out what the server does not support (MCP 2026-07-28, Subscriptions):
    https://github.com/modelcontextprotocol/python-sdk/issues/2901.
    """
    streams = [uri for uri in asked.resource_subscriptions or () if uri.startswith("stream://")]
    return types.SubscriptionFilter(
        tools_list_changed=asked.tools_list_changed if tools_change else None,
        resource_subscriptions=streams if has_streams else None,
    )


def declare_changes(capabilities: types.ServerCapabilities, *, tools_change: bool) -> None:
    """Declare only the changes that are sent: the SDK declares them of all that is listed.

    https://github.com/modelcontextprotocol/python-sdk/issues/2896.
    """
    if capabilities.tools is not None:
        capabilities.tools.list_changed = tools_change
    if capabilities.resources is not None:
        capabilities.resources.list_changed = False
