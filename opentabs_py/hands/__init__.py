"""Hands: tools that see and use any page, for what no plugin covers."""
