"""The state of the console: bounded, and sent to each reader as deltas."""
