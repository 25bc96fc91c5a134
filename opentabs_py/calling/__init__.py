"""The interface of a tool, and of a running call."""
