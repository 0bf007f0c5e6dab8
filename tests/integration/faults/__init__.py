"""Faults on the real Kafka and the real Redis."""
