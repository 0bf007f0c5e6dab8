"""Times as events carry them: epoch milliseconds, RFC 3339 text, leap seconds, and wrong units."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import msgspec

from streamer.settings import limits

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"seconds": 1, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units that a time can have by mistake, and how many of them are a second."""
_LEAP = re.compile(
    rb'"([^"]{1,200})"(\s*:\s*)'
    rb'"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):60(\.\d+)?(?:[Zz]|([+-]\d\d):?(\d\d))"'
)
"""A field and its text with a second 60. A quotation mark inside of a text has a backslash before
it, so neither part can begin or end within another text."""


def epoch_ms(moment: int | datetime) -> int:
    """Epoch milliseconds of a decoded time, rounded down."""
    return moment if isinstance(moment, int) else (moment - _EPOCH) // timedelta(milliseconds=1)


def is_in_seconds(moment: int | datetime | None) -> bool:
    """Whether a decoded time is a number that looks like epoch seconds.

    >>> is_in_seconds(1_700_000_000), is_in_seconds(1_700_000_000_000), is_in_seconds(5)
    (True, False, False)
    """
    return isinstance(moment, int) and limits.MIN_SECONDS <= moment <= limits.MAX_SECONDS


def unit_of(number: float) -> str | None:
    """The unit, other than milliseconds, in which a number would be a time from 2000 to 2100.

    >>> unit_of(1_700_000_000), unit_of(1.7e15), unit_of(1_700_000_000_000)
    ('seconds', 'microseconds', None)
    """
    for unit, in_a_second in _UNITS.items():
        if limits.MIN_SECONDS * in_a_second <= number <= limits.MAX_SECONDS * in_a_second:
            return unit
    return None


def without_leap_seconds(record: bytes, names: Collection[str]) -> bytes:
    """A JSON record whose named fields have no second 60: 23:59:60 UTC is the instant of the
    second that follows. Any other second 60 stays, and is no time.

    >>> without_leap_seconds(b'{"ts": "2016-12-31T23:59:60.5Z", "id": "7"}', ["ts"])
    b'{"ts": "2017-01-01T00:00:00.5Z", "id": "7"}'
    >>> without_leap_seconds(b'{"ts":"2017-01-01T00:59:60+0100"}', ["ts"])
    b'{"ts":"2017-01-01T00:00:00Z"}'
    """
    return _LEAP.sub(lambda found: _moved(found, names), record) if b":60" in record else record


def _moved(found: re.Match[bytes], names: Collection[str]) -> bytes:
    name, colon, day, minute, fraction, hours, minutes = found.groups()
    try:
        offset = b"%s:%s" % (hours, minutes) if hours else b"+00:00"
        last = datetime.fromisoformat(f"{day.decode()}T{minute.decode()}:59{offset.decode()}")
        utc = last.astimezone(UTC)
        if (utc.hour, utc.minute) != (23, 59):
            return found[0]
        if msgspec.json.decode(b'"%s"' % name) not in names:
            return found[0]
        following = (utc + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S").encode()
    except (ValueError, OverflowError):  # no such day or hour; the last second of the year 9999
        return found[0]
    return b'"%s"%s"%s%sZ"' % (name, colon, following.rjust(19, b"0"), fraction or b"")
