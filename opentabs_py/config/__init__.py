"""Settings, and where files are."""
