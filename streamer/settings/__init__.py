"""Settings: their types, bounds and validation. Nothing here knows what they are used for."""
