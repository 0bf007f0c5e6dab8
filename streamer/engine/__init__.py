"""The engine: a partition's state as a function of its logs. Pure: no I/O, no clock of its own."""
