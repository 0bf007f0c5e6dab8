"""What is done when something happens to an experiment: told once, to whoever should know."""
