"""The state of a partition: in memory, as it is stored, and as readers see it."""
