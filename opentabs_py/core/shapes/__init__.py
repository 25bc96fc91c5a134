"""What a site's responses look like, learned from samples."""
