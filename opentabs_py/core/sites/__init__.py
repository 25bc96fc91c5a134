"""URLs: origins, match patterns, the instances of a site."""
