"""Recordings: what passed between pages and their site, and what the tools made of it."""
