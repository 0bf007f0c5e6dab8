"""What an event tells of its items beside their places: the brute-force list, the held-out item.

One integer an item, 0 for nothing: ``reference_code * 3 + held_code``. Reference code: 0 the event
has no list, 1 the item is not in it, 1 + rank else. Held code: 0 the event has no held-out item, 1
it is another one, 2 it is this.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamer.batch import I64, Bools

_HELD_CODES = 3


def probes(items: Sequence[str], reference: Sequence[str] | None, held_out: str | None) -> I64:
    """The integers of one event's items."""
    ranks: dict[str, int] = {}
    for rank, item in enumerate(reference or (), 1):
        ranks.setdefault(item, rank)
    listed = [1 + ranks.get(item, 0) if reference else 0 for item in items]
    held = [1 + (item == held_out) if held_out else 0 for item in items]
    return np.array(listed, np.int64) * _HELD_CODES + held


def reference_rank(probe: I64) -> I64:
    """Rank in the brute-force list from 1; 0: not in it; -1: there is no list."""
    return probe // _HELD_CODES - 1


def has_held_out(probe: I64) -> Bools:
    """Whether the item's event has a held-out item."""
    return probe % _HELD_CODES > 0


def is_held_out(probe: I64) -> Bools:
    """Whether the item is the one that was held out."""
    held: Bools = probe % _HELD_CODES == 2
    return held
