"""What comes in: the spec that tells the core how to read and count it."""
