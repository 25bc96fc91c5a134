"""Recordings on disk, and recorders that watch a browser."""
