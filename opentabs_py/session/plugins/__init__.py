"""The plugins of a session: approved, staged, and in the pages."""
