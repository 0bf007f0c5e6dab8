"""Numbers that are times in another unit than milliseconds."""

from __future__ import annotations

from streamer.settings import limits

_UNITS = {"seconds": 1, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units that a time can have by mistake, and how many of them are a second."""


def unit_of(number: float) -> str | None:
    """The unit, other than milliseconds, in which a number would be a time from 2000 to 2100.

    >>> unit_of(1_700_000_000), unit_of(1.7e15), unit_of(1_700_000_000_000)
    ('seconds', 'microseconds', None)
    """
    for unit, in_a_second in _UNITS.items():
        if limits.MIN_SECONDS * in_a_second <= number <= limits.MAX_SECONDS * in_a_second:
            return unit
    return None
