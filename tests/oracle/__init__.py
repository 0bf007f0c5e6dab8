"""The obvious slow recomputation of everything streamer shows, kept for ever.

It shares no code with the engine: plain dicts and loops over the whole log at once, from the
pages alone. The engine must agree with it to the last bit wherever the state is integer.
"""
