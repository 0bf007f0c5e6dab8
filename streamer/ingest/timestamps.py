"""Numbers that are times in another unit than milliseconds."""

from __future__ import annotations

from typing import Any

from streamer.settings import limits

_UNITS = {"seconds": 1, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units that a time can have by mistake, and how many of them are a second."""


def unit_of(value: Any) -> str | None:
    """The unit, other than milliseconds, in which a number, or a text that is one, would be a time
    from 2000 to 2100.

    >>> unit_of(1_700_000_000), unit_of(1.7e15), unit_of("1700000000.5"), unit_of(1_700_000_000_000)
    ('seconds', 'microseconds', 'seconds', None)
    """
    try:
        number = float(value) if isinstance(value, str) else value
    except ValueError:
        return None
    if not isinstance(number, int | float):
        return None
    for unit, in_a_second in _UNITS.items():
        if limits.MIN_SECONDS * in_a_second <= number <= limits.MAX_SECONDS * in_a_second:
            return unit
    return None
