"""Rarer garbage collections: a full one walks every object of a large heap."""

from __future__ import annotations

import gc

_THRESHOLDS = (200_000, 50, 100)


def calm() -> None:
    """Exclude all objects that exist now from collections, and collect new ones less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
