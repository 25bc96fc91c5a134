"""The browsers of a session: found or launched, set up, and replaced."""
