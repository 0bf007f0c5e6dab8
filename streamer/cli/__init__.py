"""The command line. A command is a module with ``main(args)``, which returns the exit code."""
