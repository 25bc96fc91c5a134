"""The server: its tools, MCP, and HTTP."""
