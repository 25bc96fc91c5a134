"""MCP: what clients are sent, over Streamable HTTP and stdio."""
