"""What is kept of every call, for how long, and what it amounts to."""
