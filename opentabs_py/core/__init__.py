"""Decisions without I/O: no clock, no sockets, no async. Time is an argument."""
