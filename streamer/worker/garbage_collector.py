"""Python's garbage collector, calmed: a full collection walks every object of a large heap."""

from __future__ import annotations

import gc

_THRESHOLDS = (200_000, 50, 100)


def calm() -> None:
    """Leave what exists now out of collections, and collect what comes more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
