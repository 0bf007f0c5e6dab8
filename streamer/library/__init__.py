"""streamer from Python: what a notebook, a test or a service calls. ``import streamer`` has the
public names of it."""
