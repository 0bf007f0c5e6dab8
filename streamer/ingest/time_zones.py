"""Time zones, of times that are written without an offset."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_EPOCH = _FIRST


@lru_cache(maxsize=8)
def zone_offsets(name: str) -> list[tuple[int, int]]:
    """From which UTC millisecond on a zone of the IANA database has which offset (ms), from 1970 to
    2100; ``zoneinfo.ZoneInfoNotFoundError`` where there is no such zone.

    >>> zone_offsets("UTC"), zone_offsets("Asia/Kolkata")
    ([(0, 0)], [(0, 19800000)])
    >>> zone_offsets("Europe/Berlin")[:2]
    [(0, 3600000), (323830800000, 7200000)]
    """
    zone = zoneinfo.ZoneInfo(name)
    found = [(0, _offset_ms(_FIRST, zone))]
    day = _FIRST
    while day < _LAST:
        following = day + timedelta(days=1)
        if _offset_ms(following, zone) != found[-1][1]:
            found.append(_change(day, following, zone))
        day = following
    return found


def _offset_ms(moment: datetime, zone: zoneinfo.ZoneInfo) -> int:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def _change(low: datetime, high: datetime, zone: zoneinfo.ZoneInfo) -> tuple[int, int]:
    """When, to the second, the offset changes between two moments, and the one from then on."""
    before, after = _offset_ms(low, zone), _offset_ms(high, zone)
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if _offset_ms(middle, zone) == before else (low, middle)
    return (high - _EPOCH) // timedelta(milliseconds=1), after
