"""Integers that the core packs several numbers into: panes, and sums in them. Their widths are the
core's."""

from __future__ import annotations

from streamer._core import (
    ITEM_LABEL_BITS,
    PAIR_ITEM_BITS,
    PANE_BITS,
    PLACE_BITS,
    STAT_BITS,
    USER_SEGMENT_BITS,
    USER_STAT_BITS,
)
from streamer.encoding.arrays import I64

_STATS = 1 << STAT_BITS
_ITEM_LABELS = 1 << ITEM_LABEL_BITS
ITEM_BITS = 63 - PLACE_BITS - ITEM_LABEL_BITS
"""Bits of an item's hash in codes."""
SAMPLE_PLACE = (1 << PLACE_BITS) - 1
"""The place at which a pane of items has its sample bits, under no row."""
PAIR_SAMPLE_PLACE = SAMPLE_PLACE - 1
"""Likewise those of its pairs."""
PAIR_PLACE = 1 << (PLACE_BITS - 1)
"""Marks the place of a count of a pair of items, whose code has neither item nor label."""


def pane_number(ring: int, pane: int) -> int:
    """One number for a pane of a ring; those of a ring ascend with the pane."""
    return ring << PANE_BITS | pane


def ring_and_pane(number: int) -> tuple[int, int]:
    """What ``pane_number`` was given.

    >>> ring_and_pane(pane_number(2, 10))
    (2, 10)
    """
    return number >> PANE_BITS, number & ((1 << PANE_BITS) - 1)


def segment_and_stat(code: I64) -> tuple[I64, I64]:
    """The segment (or label) and the statistic of sums of a pane."""
    return code >> STAT_BITS, code & (_STATS - 1)


def first_user_key(pane: int) -> int:
    """The least key of a pane among the sums over users."""
    return max(pane, 0) << (USER_STAT_BITS + USER_SEGMENT_BITS)


def parts_of_user_key(key: I64) -> tuple[I64, I64, I64]:
    """(pane, segment, statistic) of sums over users, which ascend in that order."""
    stat = key & ((1 << USER_STAT_BITS) - 1)
    segment = (key >> USER_STAT_BITS) & ((1 << USER_SEGMENT_BITS) - 1)
    return key >> (USER_STAT_BITS + USER_SEGMENT_BITS), segment, stat


def segment_code(segment: I64, stat: I64) -> I64:
    """What ``segment_and_stat`` takes apart."""
    return segment << STAT_BITS | stat


def parts_of_item_code(code: I64) -> tuple[I64, I64, I64]:
    """(item, label, place) of counts of items."""
    key = code >> PLACE_BITS
    return key >> ITEM_LABEL_BITS, key & (_ITEM_LABELS - 1), code & SAMPLE_PLACE


def item_code(item: I64, label: I64, place: I64) -> I64:
    """What ``parts_of_item_code`` takes apart."""
    return (item << ITEM_LABEL_BITS | label) << PLACE_BITS | place


def items_of_pair(key: I64) -> tuple[I64, I64]:
    """The first bits of the hashes of both items of a pair, the key of its code."""
    return key >> PAIR_ITEM_BITS, key & ((1 << PAIR_ITEM_BITS) - 1)


MAX_READ_LABELS = 1 << (63 - ITEM_BITS)
"""Labels of all partitions together, which readers number: more than a partition has."""


def item_key(item: I64, label: I64) -> I64:
    """One number for an item under a label of all partitions."""
    return item << (63 - ITEM_BITS) | label


def parts_of_item_key(key: I64) -> tuple[I64, I64]:
    """What ``item_key`` was given."""
    return key >> (63 - ITEM_BITS), key & (MAX_READ_LABELS - 1)
