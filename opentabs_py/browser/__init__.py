"""Finding, installing and launching Chromium with the extension."""
