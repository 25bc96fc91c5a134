"""Ask a person before a tool runs, and remember what they have approved."""
