"""Reports of a run, to the file and to the page that show it."""
