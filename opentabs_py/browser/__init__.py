"""Find, install and launch Chromium with the extension."""
