"""Floor 3: what is published to Prometheus. Never reads an exporter."""
