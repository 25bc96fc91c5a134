"""Drift of a site from its recordings, and its effect on a plugin's tools."""
