"""Lengths of time, as written in settings and of panes; and days."""

from __future__ import annotations

import datetime
import re
from functools import cached_property

from streamer.errors import SettingsError
from streamer.formatting import two_digits
from streamer.settings import limits

HOUR_MS = 3_600_000
DAY_MS = 86_400_000
"""Days are those of UTC."""
_EPOCH = datetime.date(1970, 1, 1)
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": HOUR_MS, "d": DAY_MS}
_DURATION = re.compile(r"^(\d+)(ms|s|m|h|d)$")


def duration_ms(text: str, where: str) -> int:
    """Milliseconds of ``"90s"``, ``"5m"``, ``"24h"``; SettingsError otherwise."""
    match = _DURATION.match(text)
    if match is None or int(match[1]) == 0:
        raise SettingsError(
            f"bad duration {text!r}: a positive whole number and one of ms, s, m, h, d; at {where}"
        )
    return int(match[1]) * _UNITS_MS[match[2]]


def short(ms: int) -> str:
    """A length in its largest whole unit.

    >>> short(3_600_000), short(5_400_000), short(604_800_000)
    ('1h', '90m', '7d')
    """
    return next(
        f"{ms // size}{unit}" for unit, size in reversed(_UNITS_MS.items()) if ms % size == 0
    )


def about(ms: float) -> str:
    """A measured length, in two digits.

    >>> about(3_602_000), about(5_000_000), about(129_600_000), about(0)
    ('1h', '1.4h', '1.5d', '0ms')
    """
    units = reversed(_UNITS_MS.items())
    unit, size = next((each for each in units if ms >= each[1]), ("ms", 1))
    return f"{two_digits(ms / size).removesuffix('.0')}{unit}"


def in_ms(key: str, section: str) -> cached_property[int]:
    """A property of a section: the milliseconds of one of its durations."""
    return cached_property(lambda its: duration_ms(getattr(its, key), f"{section}.{key}"))


def pane_length_ms(window_ms: int) -> int:
    """Length of one pane of a window: a sixtieth, at least one second."""
    return max(limits.MIN_PANE_MS, window_ms // limits.PANES_PER_WINDOW)


def day_of(date: datetime.date) -> int:
    """Days since 1970-01-01.

    >>> day_of(datetime.date(1970, 1, 3))
    2
    """
    return (date - _EPOCH).days


def moment_of(said: object, where: str) -> int:
    """Epoch milliseconds of a time in RFC 3339 or of TOML's own, in UTC where it has no offset;
    SettingsError otherwise.

    >>> moment_of("2020-01-01T00:00:00Z", ""), moment_of("1970-01-01", "")
    (1577836800000, 0)
    """
    try:
        moment = datetime.datetime.fromisoformat(str(said))
    except ValueError:
        raise SettingsError(
            f"{said!r} is no time: write it like '2020-01-01T00:00:00Z'; at {where}"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return round(moment.timestamp() * 1000)


def date_of(day: int) -> datetime.date:
    """What ``day_of`` was made of."""
    return _EPOCH + datetime.timedelta(days=day)
