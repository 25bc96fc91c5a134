"""Recordings in tests: replayed instead of the site, or made."""
