"""Store and show call records: files, terminal, HTML, Perfetto, OpenTelemetry."""
