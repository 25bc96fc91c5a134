"""The console: a web page that shows a server live, and lets its user act."""
