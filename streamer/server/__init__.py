"""The exporter: Prometheus text, JSON and a page over what the store holds."""
