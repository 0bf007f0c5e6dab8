"""The store in Redis."""
