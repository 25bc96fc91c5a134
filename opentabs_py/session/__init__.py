"""A server, its browser and its plugins as one."""
