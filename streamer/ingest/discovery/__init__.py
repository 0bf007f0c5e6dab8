"""What records of others mean, found by looking at some of them: pure, without I/O."""
