"""The audit: every call in one SQLite file, which several servers write."""
