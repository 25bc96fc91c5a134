"""The tools that a server has, and their calls; nothing here knows MCP."""
