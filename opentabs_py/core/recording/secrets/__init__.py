"""The secrets of a recording: what is one, where they are, and which there are."""
