"""The tools of a session, and where each runs."""
