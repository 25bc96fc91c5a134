"""The record of a call."""
