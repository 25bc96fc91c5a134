"""What a tool is, and a call of it under way."""
