"""Tools written in Python: what they may look like, and how they run."""
