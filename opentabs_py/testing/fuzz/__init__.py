"""Fuzz tools: draw arguments from a tool's schema, and check what it promises for all of them."""
