"""How a site differs from its recordings, and what that does to a plugin's tools."""
