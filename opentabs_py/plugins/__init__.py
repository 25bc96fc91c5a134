"""Plugins on disk."""
