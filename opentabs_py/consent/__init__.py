"""Ask the user before a tool runs, and remember what they have approved."""
