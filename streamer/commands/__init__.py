"""One module a command: ``main(args)`` does its work and returns the exit code."""
