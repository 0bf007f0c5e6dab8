"""A worker: it owns partitions, feeds them, and commits."""
