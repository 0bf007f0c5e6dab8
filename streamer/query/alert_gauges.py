"""Alerts as gauges: each window with its interval, its baseline, and the change between them.

Rules fire on the change's interval; everything that their annotations say is here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite

from streamer.query.alerts import Watched
from streamer.query.counters import Counter, Known, Sample, declaring
from streamer.stats.alerting.baseline import Change
from streamer.stats.alerting.traffic import Traffic

GAUGES: list[Counter] = []
_declare = declaring(GAUGES, "alerts")
_LABELS = ("alert", "<dimension>")
_METRIC = "as the metric"
_EMPTY = "absent where it is not defined, or has no bound"
_AT_0 = "shown at 0"


def _gauge(
    name: str,
    doc: str,
    read: Callable[[Watched], float | None],
    *,
    formula: str,
    unit: str = _METRIC,
    empty: str = _EMPTY,
) -> None:
    """Declare one value of every watched segment."""

    def samples(known: Known) -> Iterator[Sample]:
        for found in known.watched:
            value = read(found)
            if value is not None and isfinite(value):
                yield (found.alert.name, *found.segment), value

    samples.__doc__ = doc
    _declare(name, *_LABELS, formula=formula, unit=unit, empty=empty)(samples)


def _of_traffic(read: Callable[[Traffic], float | None]) -> Callable[[Watched], float | None]:
    """The same of what is said of traffic, where anything is."""
    return lambda found: None if found.traffic is None else read(found.traffic)


def _of_reference(read: Callable[[Change], float | None]) -> Callable[[Watched], float | None]:
    """The same of the comparison with the reference week."""
    return lambda found: None if found.reference is None else read(found.reference)


_gauge(
    "alert_value",
    "The metric that an alert watches, now: where feedback is still to come, as of when it could "
    "not change any more.",
    lambda found: found.change.value,
    formula="the metric in the window",
)
_gauge(
    "alert_lower",
    "Lower end of the interval of the value, users taken as a whole.",
    lambda found: found.change.low,
    formula="lower end of the value's interval",
)
_gauge(
    "alert_upper",
    "Upper end of the interval of the value.",
    lambda found: found.change.high,
    formula="upper end of the value's interval",
)
_gauge(
    "alert_baseline",
    "What the value is compared with.",
    lambda found: found.change.baseline,
    formula="the metric at the same time of day on past days (of the same weekday once four weeks "
    "are known), or in the window before",
)
_gauge(
    "alert_same_time_value",
    "The same time of day on the past days together, whatever the alert is compared with.",
    lambda found: found.same_time,
    formula="the metric at the same time on past days",
)
_gauge(
    "alert_before_value",
    "The window before, whatever the alert is compared with.",
    lambda found: found.before,
    formula="the metric in the window before",
)
_gauge(
    "alert_baseline_windows",
    "How many windows the baseline is made of.",
    lambda found: found.change.days,
    formula="past windows with any traffic",
    unit="windows",
    empty=_AT_0,
)
_gauge(
    "alert_support",
    "How much the value rests on.",
    lambda found: found.change.support,
    formula="denominator of the metric in the window",
    unit="events or slates",
    empty=_AT_0,
)
_gauge(
    "alert_expected_support",
    "How much there usually is.",
    lambda found: found.change.expected_support,
    formula="mean support of the past windows",
    unit="events or slates",
    empty=_AT_0,
)
_gauge(
    "alert_change_ratio",
    "Relative change from the baseline.",
    lambda found: found.change.change,
    formula="value / baseline - 1",
    unit="ratio",
)
_gauge(
    "alert_change_lower_ratio",
    "Lower end of the interval of the change, days that differ included.",
    lambda found: found.change.change_low,
    formula="lower end of the change's interval",
    unit="ratio",
)
_gauge(
    "alert_change_upper_ratio",
    "Upper end of the interval of the change: a fall is certain where it is below 0.",
    lambda found: found.change.change_high,
    formula="upper end of the change's interval",
    unit="ratio",
)


_gauge(
    "alert_traffic",
    "Events (or slates) in the last whole panes: the denominator of the metric that is watched.",
    _of_traffic(lambda traffic: traffic.events),
    formula="denominator of the metric in the window without the pane that is not over",
    unit="events or slates",
    empty="absent where an alert has no traffic alert",
)
_gauge(
    "alert_traffic_usual",
    "How many there usually are at the same time.",
    _of_traffic(lambda traffic: traffic.usual),
    formula="trimmed mean (geometric) at the same time on past days, of the same weekday once four "
    "weeks are known",
    unit="events or slates",
)
_gauge(
    "alert_traffic_change_ratio",
    "Relative change of traffic from the usual.",
    _of_traffic(lambda traffic: traffic.change),
    formula="traffic / usual - 1",
    unit="ratio",
)
_gauge(
    "alert_traffic_change_lower_ratio",
    "Lower end of the interval of the change of traffic, as past days differ.",
    _of_traffic(lambda traffic: traffic.change_low),
    formula="lower end of the interval",
    unit="ratio",
)
_gauge(
    "alert_traffic_change_upper_ratio",
    "Upper end of the interval of the change of traffic.",
    _of_traffic(lambda traffic: traffic.change_high),
    formula="upper end of the interval",
    unit="ratio",
)
_gauge(
    "alert_past_week_value",
    "The metric over the past 7 whole days (UTC), which is compared with the reference week.",
    _of_reference(lambda change: change.value),
    formula="the metric in 7 days",
)
_gauge(
    "alert_reference_value",
    "The metric in the reference week.",
    _of_reference(lambda change: change.baseline),
    formula="the metric in the reference week",
)
_gauge(
    "alert_reference_change_ratio",
    "Relative change of the past 7 days from the reference week.",
    _of_reference(lambda change: change.change),
    formula="past week / reference week - 1",
    unit="ratio",
)
_gauge(
    "alert_reference_change_lower_ratio",
    "Lower end of the interval of the change from the reference week.",
    _of_reference(lambda change: change.change_low),
    formula="lower end of the interval",
    unit="ratio",
)
_gauge(
    "alert_reference_change_upper_ratio",
    "Upper end of the interval of the change from the reference week.",
    _of_reference(lambda change: change.change_high),
    formula="upper end of the interval",
    unit="ratio",
)


@_declare(
    "alert_status",
    *(*_LABELS, "status"),
    formula="1 for what holds",
    unit="1",
    empty="absent for what does not hold",
)
def _status(known: Known) -> Iterator[Sample]:
    """Status of a watched segment: fine, dropped, risen, too little data, days differ, no
    traffic, no baseline."""
    for found in known.watched:
        yield (found.alert.name, *found.segment, str(found.change.status)), 1


@_declare(
    "alert_traffic_status",
    *(*_LABELS, "status"),
    formula="1 for what holds",
    unit="1",
    empty="absent for what does not hold",
)
def _traffic_status(known: Known) -> Iterator[Sample]:
    """Status of a watched segment's traffic: fine, dropped, risen, too little data, days
    differ, no baseline."""
    for found in known.watched:
        if found.traffic is not None:
            yield (found.alert.name, *found.segment, str(found.traffic.status)), 1


@_declare(
    "alert_reference_status",
    *(*_LABELS, "status"),
    formula="1 for what holds",
    unit="1",
    empty="absent for what does not hold",
)
def _reference_status(known: Known) -> Iterator[Sample]:
    """Status of a watched segment's past 7 days against the reference week: fine, dropped,
    risen, too little data, days differ, no baseline."""
    for found in known.watched:
        if found.reference is not None:
            yield (found.alert.name, *found.segment, str(found.reference.status)), 1
