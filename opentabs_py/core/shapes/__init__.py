"""What a site's answers look like, learned from samples."""
