"""Dashboards of Grafana, rules of Prometheus and routes of Alertmanager, for a settings file."""
