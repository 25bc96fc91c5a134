"""What is known of MCP clients, by the names that they send."""

from typing import Any, Final

from mcp.server.context import ServerRequestContext

LINKS_SINCE: Final = "2025-06-18"  # the first revision with links to resources in results
# Frameworks that do not know a link drop the whole result for it, or the link. Nothing in MCP says
# which client reads them, and most frameworks send the SDK's name.
_READ_LINKS: Final = frozenset(
    {
        "claude-code",
        "mcp-inspector",
        "Visual Studio Code",
        "Visual Studio Code - Insiders",
    }
)


def reads_links(ctx: ServerRequestContext[Any]) -> bool:
    """Return whether a client is known to read links to resources in results."""
    client = ctx.session.client_params
    return (
        ctx.protocol_version >= LINKS_SINCE
        and client is not None
        and client.client_info.name in _READ_LINKS
    )
