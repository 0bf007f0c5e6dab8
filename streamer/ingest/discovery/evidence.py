"""What speaks for each field that is proposed: counts, ranges and shares, never an id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from streamer.ingest.discovery.items import whole
from streamer.ingest.discovery.read_records import ValueRead, records_of
from streamer.ingest.discovery.shapes import SampledTopic
from streamer.ingest.lookup import as_text
from streamer.ingest.mapping import UNITS
from streamer.settings.event_fields import FIELDS, LINE_TYPES, MOMENTS
from streamer.settings.model import Settings
from streamer.settings.source_rules import forms_of

_SHARED = ("user_id", "item_id", "request_id", "impression_id")
"""Ids by which feedback finds its impression."""
_FEEDBACK = ("click", "conversion")
_LEAST_TIMES, _TAIL, _TIMES_AS_LONG, _DAY_SECONDS = 20, 0.05, 10, 86_400
"""Times that are far from the middle 90 %: by more than ten times its length, and a day."""
_FEW = 2
"""Kinds that are named, where all are alike."""


class FieldEvidence:
    """What the records of samples hold where settings say that fields stand."""

    def __init__(self, settings: Settings, samples: Sequence[SampledTopic]) -> None:
        self._sources = settings.sources
        self._records = records_of(settings, samples)

    def kinds(self, number: int) -> list[str]:
        """The kinds of which a source has records."""
        return [kind for kind in LINE_TYPES if (number, kind) in self._records]

    def of(self, number: int, name: str, kinds: Sequence[str]) -> str:
        """What is known of a field of the records of some kinds of a source, in short; "" where
        nothing is."""
        values = {kind: self._values(number, kind, name) for kind in kinds}
        values = {kind: of_kind for kind, of_kind in values.items() if any(of_kind)}
        flat = [one for of_kind in values.values() for found in of_kind for one in found]
        if not flat:
            return ""
        field = FIELDS.get(name)
        if name in MOMENTS:
            return self._times(number, name, values)
        if field is not None and field.low is not None:
            return _range(flat)
        if name == "event_id":
            return _unique(values)
        if name not in (*_SHARED, "join_id", "session_id"):
            return _counted(len(set(map(as_text, flat))), "value")
        said = [_counted(len(set(map(as_text, flat))), "value")]
        if name != "item_id":
            said[0] += f", in {_shares(values, self.kinds(number))}"
        return "; ".join([*said, *self._common(name, values)])

    def lacks_offset(self, number: int) -> bool:
        """Whether a time of a source is a text that has no offset."""
        return any(
            _may_lack_offset(form) and _lacks_offset(form, one.value)
            for kind in self.kinds(number)
            for form, one in self._moments(number, kind, "ts")
        )

    def outside(self, number: int) -> str:
        """How many times of a source are far from all others, and which; "" where none is."""
        seconds = [
            one.ms / 1000
            for kind in self.kinds(number)
            for _, one in self._moments(number, kind, "ts")
            if one.ms is not None
        ]
        if len(seconds) < _LEAST_TIMES:
            return ""
        first, last = np.quantile(seconds, (_TAIL, 1 - _TAIL))
        most = _TIMES_AS_LONG * (last - first) + _DAY_SECONDS
        far = [at for at in seconds if not first - most <= at <= last + most]
        shown = ", ".join(dict.fromkeys(_between(at, at)[:10] for at in sorted(far)[:3]))
        whole = f"{len(far):,} of {len(seconds):,} times are far from all others"
        return f"{whole} ({shown}), and are counted" if far else ""

    def _common(self, name: str, values: Mapping[str, Sequence[list[Any]]]) -> Iterator[str]:
        """How many values of feedback are those of impressions, wherever these come from."""
        if name not in _SHARED:
            return
        shown = {
            as_text(one)
            for i in range(len(self._sources))
            for found in self._values(i, "impression", name)
            for one in found
        }
        shares: dict[int, list[str]] = {}
        for kind in _FEEDBACK:
            own = {as_text(one) for found in values.get(kind, ()) for one in found}
            if own and shown:
                shares.setdefault(_percent(len(own & shown), len(own)), []).append(LINE_TYPES[kind])
        for share, names in shares.items():
            yield f"{share} % of those of {' and '.join(names)} are of impressions"

    def _times(self, number: int, name: str, values: Mapping[str, Any]) -> str:
        units, seconds = list[str](), list[float]()
        for kind in values:
            for form, one in self._moments(number, kind, name):
                units.append(_how_written(form, one.value))
                seconds += [] if one.ms is None else [one.ms / 1000]
        between = [_between(min(seconds), max(seconds))] if seconds else []
        written = " or ".join(filter(None, dict.fromkeys(units)))
        return ", ".join([*filter(None, [written]), *between])

    def _values(self, number: int, kind: str, name: str) -> list[list[Any]]:
        """The values of a field of each record."""
        is_whole = self._sources[number].whole_ids and name in _SHARED
        events = self._records.get((number, kind), ())
        values = [[one.value for one in event.values.get(name, ())] for event in events]
        return [[whole(as_text(x)) for x in of] for of in values] if is_whole else values

    def _moments(
        self, number: int, kind: str, name: str
    ) -> Iterator[tuple[Mapping[str, Any], ValueRead]]:
        """The times of all records, each with the form that says how it is written."""
        forms = list(forms_of(self._sources[number].fields_of(LINE_TYPES[kind]).get(name, False)))
        for event in self._records.get((number, kind), ()):
            for one in event.values.get(name, ()):
                yield forms[one.form], one


def _counted(n: int, what: str) -> str:
    """A number of things.

    >>> _counted(1, "value"), _counted(1200, "value")
    ('1 value', '1,200 values')
    """
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _percent(part: int, whole: int) -> int:
    """A share in percent: 0 and 100 only where it is none and all.

    >>> _percent(999, 1000), _percent(1, 1000), _percent(7, 7)
    (99, 1, 100)
    """
    if part in (0, whole):
        return 100 if part else 0
    return min(99, max(1, round(100 * part / whole)))


def _shares(values: Mapping[str, Sequence[list[Any]]], kinds: Sequence[str]) -> str:
    """In how many of the records of each kind there is a value. ``kinds``: all there are."""
    shares: dict[int, list[str]] = {}
    for kind, of_kind in values.items():
        share = _percent(sum(map(bool, of_kind)), len(of_kind))
        shares.setdefault(share, []).append(LINE_TYPES[kind])
    if len(shares) == 1 and len(kinds) == len(values) > _FEW:
        return f"{next(iter(shares))} % of all events"
    return ", ".join(f"{share} % of {_listed(names)}" for share, names in shares.items())


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> _listed(["impressions"]), _listed(["impressions", "clicks", "sessions"])
    ('impressions', 'impressions, clicks and sessions')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _unique(values: Mapping[str, Sequence[list[Any]]]) -> str:
    """Whether ids of events are different; a record may be events of several kinds."""
    most = 0.0
    for of_kind in values.values():
        own = [as_text(one) for found in of_kind for one in found]
        repeated = len(own) - len(set(own))
        most = max(most, repeated / len(own) if own else 0)
    if not most:
        return "different in each record"
    return f"{_percent(round(most * 10_000), 10_000)} % are those of records before"


def _range(values: Sequence[Any]) -> str:
    """The lowest and the highest number."""
    numbers = [float(one) for one in values if isinstance(one, int | float)]
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    digits = 0 if all(one.is_integer() for one in numbers) else 2
    return f"{low:,.{digits}f} to {high:,.{digits}f}" if low < high else f"{low:,.{digits}f}"


def _how_written(form: Mapping[str, Any], value: Any) -> str:
    """How a time is written, in words; "" where its format says it."""
    if "format" in form:
        return ""
    if str(value).replace(".", "", 1).isdigit():
        return UNITS.get(form.get("unit", "ms"), UNITS["ms"])
    return "without an offset" if _lacks_offset(form, value) else "RFC 3339"


def _between(low: float, high: float) -> str:
    """A span of time.

    >>> _between(1_793_527_200, 1_793_527_800), _between(1_793_527_200, 1_793_700_000)
    ('2026-11-01 10:00 to 10:10', '2026-11-01 10:00 to 2026-11-03 10:00')
    """
    try:
        first, last = (datetime.fromtimestamp(at, UTC) for at in (low, high))
    except (ValueError, OverflowError, OSError):
        return "of no time there is"
    end = f"{last:%H:%M}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M} to {end}"


def _may_lack_offset(form: Mapping[str, Any]) -> bool:
    """Whether times that are written so may have no offset."""
    if "format" in form:
        how = str(form["format"])
        return "%z" not in how.lower() and "GMT" not in how
    return str(form.get("unit", "iso")) == "iso"


def _lacks_offset(form: Mapping[str, Any], value: Any) -> bool:
    """Whether a time of a day is a text without an offset.

    >>> some = ("2026-11-01 10:00:00", "2026-11-01T10:00:00Z", "2026-11-01 17:00+01:00")
    >>> [_lacks_offset({}, text) for text in some]
    [True, False, False]
    """
    if "format" in form or not isinstance(value, str):
        return "format" in form
    _, _, clock = value.strip().replace("T", " ").partition(" ")
    return bool(clock) and clock[-1].isdigit() and not {"+", "-"} & set(clock[-6:])
