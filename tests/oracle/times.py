"""Times as events write them: numbers, texts of numbers, RFC 3339 texts."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from streamer.settings.model import Settings

from .parsing import Decimals, broken
from .values import integer

MAX_EVENT_MS = 4_102_444_800_000  # 2100-01-01
FIRST_SECOND, LAST_SECOND = 946_684_800, 4_102_444_800  # 2000-01-01 and 2100-01-01
DAY_MS = 24 * 3600 * 1000
DECIMAL = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
RFC_3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"(?:([Zz]| UTC)|([+-])([0-9]{2})(?::?([0-9]{2}))?)?"
)
"""Other forms, too: a space (RFC 3339 allows it), an offset like +0100 or +01, none: in a zone."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment_ms(value: Any, reason: str, settings: Settings, near_ms: int = 0) -> int:
    """Epoch milliseconds of a number, a text that is one, or an RFC 3339 text; a number that looks
    like epoch seconds is none. ``near_ms``: the record's time."""
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = Decimals(value)
    if isinstance(value, str):
        return integer(text_ms(value, reason, settings, near_ms), 0, MAX_EVENT_MS, reason)
    if isinstance(value, Decimals):
        value = floor_of(value, reason)
    if isinstance(value, int) and FIRST_SECOND <= value <= LAST_SECOND:
        broken(reason)
    return integer(value, 0, MAX_EVENT_MS, reason)


def floor_of(value: Decimals, reason: str) -> int:
    """A number rounded down: of more than 18 digits, or with an exponent, as a double."""
    if value.text.lstrip("-").replace(".", "").isdigit() and len(value.text.replace(".", "")) <= 18:
        return math.floor(Decimal(value.text))
    if math.isinf(value):
        broken(reason)
    return math.floor(value)


def text_ms(value: str, reason: str, settings: Settings, near_ms: int = 0) -> int:
    """Epoch milliseconds of an RFC 3339 text, which has microseconds: further digits are rounded,
    and the milliseconds of that are cut off. 23:59:60 UTC is the second that follows."""
    match = RFC_3339.fullmatch(value)
    if match is None:
        broken(reason)
    day, clock, fraction, utc, sign, hours, minutes = match.groups()
    is_leap = clock.endswith(":60")
    try:
        moment = datetime.fromisoformat(f"{day}T{clock[:-2]}{59 if is_leap else clock[-2:]}+00:00")
    except ValueError:
        broken(reason)
    offset_ms = 0
    if sign is None and utc is None:
        offset_ms = in_zone(moment, settings.events.zone, near_ms)
    if sign is not None:
        minutes = minutes or "00"
        if int(hours) > 23 or int(minutes) > 59:
            broken(reason)
        offset_ms = (int(hours) * 60 + int(minutes)) * (60_000 if sign == "+" else -60_000)
    whole_ms = (moment - EPOCH) // timedelta(milliseconds=1) - offset_ms
    if is_leap:
        if whole_ms % DAY_MS != DAY_MS - 1000:
            broken(reason)
        whole_ms += 1000
    micros = (int(((fraction or "") + "0" * 7)[:7]) + 5) // 10
    return whole_ms + micros // 1000


def in_zone(moment: datetime, zone: str, near_ms: int) -> int:
    """The offset (ms) of a wall clock in a zone, from 1970 to 2100: where it was put back that of
    the time nearest to another, or the first; where it was put forward that of before."""
    year = min(max(moment.year, 1970), 2099)
    within = moment.replace(
        year=year, day=min(moment.day, 28) if year != moment.year else moment.day
    )
    offsets = []
    for fold in (0, 1):
        offset = within.replace(tzinfo=ZoneInfo(zone), fold=fold).utcoffset()
        assert offset is not None
        offsets.append(offset // timedelta(milliseconds=1))
    first, second = offsets
    if first <= second:
        return first
    shown_ms = (moment - EPOCH) // timedelta(milliseconds=1)
    middle_ms = shown_ms - (first + second) / 2
    return first if near_ms <= middle_ms else second


def check_moment(said: Any, reason: str, settings: Settings) -> None:
    """A time of any kind; of texts only the form is looked at."""
    if isinstance(said, str) and not DECIMAL.fullmatch(said):
        text_ms(said, reason, settings)
    elif isinstance(said, str) or (isinstance(said, int | float) and not isinstance(said, bool)):
        number = Decimals(said) if isinstance(said, str) else said
        whole = floor_of(number, reason) if isinstance(number, Decimals) else number
        integer(whole, 0, MAX_EVENT_MS, reason)
    else:
        broken(reason)
