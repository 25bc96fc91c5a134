"""What is recorded of a call."""
