"""The bridge to one browser's extension."""
