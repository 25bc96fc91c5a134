"""What the console shows: bounded state, of which a reader gets what has changed."""
