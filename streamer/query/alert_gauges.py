"""Alerts as gauges: what each check says of every watched segment, in numbers and by status."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from streamer.metrics.definition import DIMENSIONS, Family, Sample, SeriesDeclarations
from streamer.query.checks import CHECKS, Check, Gauge
from streamer.query.counters import CounterInputs, Samples

PREFIX = "alert_"
_LABELS = ("alert", DIMENSIONS)
series = SeriesDeclarations[Samples]("total", "absent for what does not hold")


def _values(check: Check, of: Gauge) -> Samples:
    def samples(known: CounterInputs) -> Iterator[Sample]:
        for watched in known.watched:
            verdict = watched.checks.get(check.name)
            value = None if verdict is None else getattr(verdict, of.value)
            if value is not None and isfinite(value):
                yield (watched.alert.name, *watched.segment), value

    return samples


def _statuses(check: Check) -> Samples:
    def samples(known: CounterInputs) -> Iterator[Sample]:
        for watched in known.watched:
            if verdict := watched.checks.get(check.name):
                yield (watched.alert.name, *watched.segment, str(verdict.status)), 1

    return samples


for _check in CHECKS:
    for _of in _check.gauges:
        series.row(
            *(PREFIX + _of.name, _of.unit, _of.formula, _of.doc, _values(_check, _of)),
            labels=_LABELS,
            empty=_of.empty,
        )
    series.row(
        *(PREFIX + _check.status_gauge, "1", "1 for what holds"),
        *(_check.status_doc, _statuses(_check)),
        labels=(*_LABELS, "status"),
    )

FAMILY = Family("alerts", tuple(series.series))
