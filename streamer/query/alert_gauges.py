"""Alerts as gauges: each window with its interval, its baseline, and the change between them.

Rules fire on the change's interval; everything that their annotations say is here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite

from streamer.metrics.definition import Declarations, Family, Sample
from streamer.query.alerts import AlertVerdict
from streamer.query.counters import CounterInputs, Samples
from streamer.stats.alerting.baseline import MetricChange
from streamer.stats.alerting.traffic import Traffic

gauge = Declarations[Samples]("total")
_LABELS = ("alert", "<dimension>")
_METRIC = "as the metric"
_EMPTY = "absent where it is not defined, or has no bound"
_AT_0 = "shown at 0"


def _gauge(
    name: str,
    doc: str,
    read: Callable[[AlertVerdict], float | None],
    *,
    formula: str,
    unit: str = _METRIC,
    empty: str = _EMPTY,
) -> None:
    """Declare one value of every watched segment."""

    def samples(known: CounterInputs) -> Iterator[Sample]:
        for found in known.watched:
            value = read(found)
            if value is not None and isfinite(value):
                yield (found.alert.name, *found.segment), value

    gauge(name, labels=_LABELS, formula=formula, unit=unit, empty=empty, doc=doc)(samples)


def _of_traffic(read: Callable[[Traffic], float | None]) -> Callable[[AlertVerdict], float | None]:
    """A value of the traffic verdict; None where there is none."""
    return lambda found: None if found.traffic is None else read(found.traffic)


def _of_reference(
    read: Callable[[MetricChange], float | None],
) -> Callable[[AlertVerdict], float | None]:
    """A value of the comparison with the reference week; None where there is none."""
    return lambda found: None if found.reference is None else read(found.reference)


_gauge(
    "alert_value",
    "Current value of the watched metric; where feedback may still come, that of the newest window "
    "that cannot change any more.",
    lambda found: found.change.value,
    formula="the metric in the window",
)
_gauge(
    "alert_lower",
    "Lower end of the interval of the value, clustered by user.",
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
    "Baseline that the value is compared with.",
    lambda found: found.change.baseline,
    formula="the metric in past windows without the highest and the lowest, or in a window before",
)
_gauge(
    "alert_same_time_value",
    "The metric at the same time on past days together, whatever the baseline of the alert.",
    lambda found: found.same_time,
    formula="the metric at the same time on past days",
)
_gauge(
    "alert_before_value",
    "The metric in the window before, whatever the baseline of the alert.",
    lambda found: found.before,
    formula="the metric in the window before",
)
_gauge(
    "alert_baseline_windows",
    "Number of past windows in the baseline.",
    lambda found: found.change.days,
    formula="past windows with any traffic",
    unit="windows",
    empty=_AT_0,
)
_gauge(
    "alert_support",
    "Support of the value.",
    lambda found: found.change.support,
    formula="denominator of the metric in the window",
    unit="events or slates",
    empty=_AT_0,
)
_gauge(
    "alert_expected_support",
    "Usual support.",
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
    "Lower end of the interval of the change; it includes variation between days.",
    lambda found: found.change.change_low,
    formula="lower end of the change's interval",
    unit="ratio",
)
_gauge(
    "alert_change_upper_ratio",
    "Upper end of the interval of the change: a fall is significant where it is below 0.",
    lambda found: found.change.change_high,
    formula="upper end of the change's interval",
    unit="ratio",
)


_gauge(
    "alert_traffic",
    "Traffic of the watched metric: its denominator in the last complete panes.",
    _of_traffic(lambda traffic: traffic.events),
    formula="denominator of the metric in the window without the current pane",
    unit="events or slates",
    empty="absent where an alert has no traffic alert",
)
_gauge(
    "alert_traffic_usual",
    "Usual traffic at the same time.",
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
    "Lower end of the interval of the change of traffic, by the variation of past days.",
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


def _status(
    name: str, doc: str, read: Callable[[AlertVerdict], MetricChange | Traffic | None]
) -> None:
    """Declare the status of one verdict on every watched segment."""

    def samples(known: CounterInputs) -> Iterator[Sample]:
        for found in known.watched:
            verdict = read(found)
            if verdict is not None:
                yield (found.alert.name, *found.segment, str(verdict.status)), 1

    labels, empty = (*_LABELS, "status"), "absent for what does not hold"
    gauge(name, labels=labels, formula="1 for what holds", unit="1", empty=empty, doc=doc)(samples)


_status(
    "alert_status",
    "Status of a watched segment: within the tolerance, perhaps beyond the tolerance, dropped, "
    "risen, too little data, days differ, no traffic, no baseline.",
    lambda found: found.change,
)
_status(
    "alert_traffic_status",
    "Status of a watched segment's traffic, in the same words.",
    lambda found: found.traffic,
)
_status(
    "alert_reference_status",
    "Status of a watched segment against the reference week, in the same words.",
    lambda found: found.reference,
)


FAMILY = Family("alerts", tuple(gauge.series))
