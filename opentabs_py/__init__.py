"""OpenTabs for Python: tools that run in your signed-in browser tabs, served over MCP."""

__version__ = "0.1.0"
