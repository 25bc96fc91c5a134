"""Tools written in Python: how to declare them, and how they run."""
