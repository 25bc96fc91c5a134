"""What is known of calls, kept and shown: files, terminal, HTML, Perfetto, OpenTelemetry."""
