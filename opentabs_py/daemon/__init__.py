"""Servers that run in the background: where they are recorded, and how commands talk to them."""
