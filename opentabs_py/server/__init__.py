"""The MCP server: tools by name, over Streamable HTTP and stdio."""
