"""Find the API of a site in a recording, and write a plugin for it."""
