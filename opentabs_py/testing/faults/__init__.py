"""Faults that a test injects into the chain."""
