"""The shapes of a site's responses, learned from samples."""
