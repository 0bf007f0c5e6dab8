"""A deterministic simulation of workers, Kafka and the store; ``python -m tests.simulation``."""
