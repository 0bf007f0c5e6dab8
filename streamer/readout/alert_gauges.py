"""Alerts as gauges: each window with its interval, its baseline, and the change between them.

Rules fire on the change's interval; everything that their annotations say is here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite

from streamer.alerting.baseline import Change
from streamer.readout.alerts import Watched
from streamer.readout.counters import Counter, Known, Sample, declaring

GAUGES: list[Counter] = []
_declare = declaring(GAUGES, "alerts")
_LABELS = ("alert", "<dimension>")
_EMPTY = "absent where it is not defined, or has no bound"


def _samples(known: Known, read: Callable[[Change], float | None]) -> Iterator[Sample]:
    return _of_watched(known, lambda found: read(found.change))


def _of_watched(known: Known, read: Callable[[Watched], float | None]) -> Iterator[Sample]:
    for found in known.watched:
        value = read(found)
        if value is not None and isfinite(value):
            yield (found.alert.name, *found.segment), value


@_declare("alert_value", *_LABELS, formula="the metric in the window", unit="as the metric",
          empty=_EMPTY)  # fmt: skip
def _value(known: Known) -> Iterator[Sample]:
    """The metric that an alert watches, now: where feedback is still to come, as of when it could
    not change any more."""
    return _samples(known, lambda change: change.value)


@_declare("alert_lower", *_LABELS, formula="lower end of the value's interval",
          unit="as the metric", empty=_EMPTY)  # fmt: skip
def _lower(known: Known) -> Iterator[Sample]:
    """Lower end of the interval of the value, users taken as a whole."""
    return _samples(known, lambda change: change.low)


@_declare("alert_upper", *_LABELS, formula="upper end of the value's interval",
          unit="as the metric", empty=_EMPTY)  # fmt: skip
def _upper(known: Known) -> Iterator[Sample]:
    """Upper end of the interval of the value."""
    return _samples(known, lambda change: change.high)


@_declare("alert_baseline", *_LABELS,
          formula="the metric at the same time of day on past days, or in the window before",
          unit="as the metric", empty=_EMPTY)  # fmt: skip
def _baseline(known: Known) -> Iterator[Sample]:
    """What the value is compared with."""
    return _samples(known, lambda change: change.baseline)


@_declare("alert_same_time_value", *_LABELS, formula="the metric at the same time on past days",
          unit="as the metric", empty=_EMPTY)  # fmt: skip
def _same_time(known: Known) -> Iterator[Sample]:
    """The same time of day on the past days together, whatever the alert is compared with."""
    return _of_watched(known, lambda found: found.same_time)


@_declare("alert_before_value", *_LABELS, formula="the metric in the window before",
          unit="as the metric", empty=_EMPTY)  # fmt: skip
def _before(known: Known) -> Iterator[Sample]:
    """The window before, whatever the alert is compared with."""
    return _of_watched(known, lambda found: found.before)


@_declare("alert_baseline_windows", *_LABELS, formula="past windows with any traffic",
          unit="windows", empty="shown at 0")  # fmt: skip
def _windows(known: Known) -> Iterator[Sample]:
    """How many windows the baseline is made of."""
    return _samples(known, lambda change: change.days)


@_declare("alert_support", *_LABELS, formula="denominator of the metric in the window",
          unit="events or slates", empty="shown at 0")  # fmt: skip
def _support(known: Known) -> Iterator[Sample]:
    """How much the value rests on."""
    return _samples(known, lambda change: change.support)


@_declare("alert_expected_support", *_LABELS, formula="mean support of the past windows",
          unit="events or slates", empty="shown at 0")  # fmt: skip
def _expected(known: Known) -> Iterator[Sample]:
    """How much there usually is."""
    return _samples(known, lambda change: change.expected_support)


@_declare("alert_change_ratio", *_LABELS, formula="value / baseline - 1", unit="ratio",
          empty=_EMPTY)  # fmt: skip
def _change(known: Known) -> Iterator[Sample]:
    """Relative change from the baseline."""
    return _samples(known, lambda change: change.change)


@_declare("alert_change_lower_ratio", *_LABELS, formula="lower end of the change's interval",
          unit="ratio", empty=_EMPTY)  # fmt: skip
def _change_lower(known: Known) -> Iterator[Sample]:
    """Lower end of the interval of the change, days that differ included."""
    return _samples(known, lambda change: change.change_low)


@_declare("alert_change_upper_ratio", *_LABELS, formula="upper end of the change's interval",
          unit="ratio", empty=_EMPTY)  # fmt: skip
def _change_upper(known: Known) -> Iterator[Sample]:
    """Upper end of the interval of the change: a fall is certain where it is below 0."""
    return _samples(known, lambda change: change.change_high)


@_declare("alert_status", *_LABELS, "status", formula="1 for what holds", unit="1",
          empty="absent for what does not hold")  # fmt: skip
def _status(known: Known) -> Iterator[Sample]:
    """What is said of a watched segment: fine, dropped, risen, too little to tell, no traffic, no
    baseline."""
    for found in known.watched:
        yield (found.alert.name, *found.segment, str(found.change.status)), 1
