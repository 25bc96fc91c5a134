"""HTTP: one socket for MCP clients, extensions and the console, and its limits."""
