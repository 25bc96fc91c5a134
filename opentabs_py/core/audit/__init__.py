"""Audit entries, their retention, and statistics."""
