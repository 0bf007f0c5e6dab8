"""Kafka: clients, topics, the Faust transport, and what is remembered of logs."""
