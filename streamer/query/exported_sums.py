"""The sums of an experiment, by day, metric and arm: what its readout is computed from."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from msgspec import Struct

from streamer.encoding import limbs
from streamer.query.experiment_metrics import by_arm
from streamer.query.experiments import StoredExperiment
from streamer.settings.durations import date_of
from streamer.stats.experiments.sums import MOMENTS, ArmSums, BeforeSums
from streamer.stats.experiments.trials import cumulated


class ExportedSums(Struct, frozen=True):
    """Sums over the ``users`` of an arm from the start to the end of a ``day``: x and y are a
    user's numerator and denominator, in units of the metric (before the start: u and v, None where
    no days before count), ``xy`` is Σxy, and so on. Values are Σx / Σy. ``nonzero``: users with
    x ≠ 0."""

    day: datetime.date
    metric: str
    arm: str
    users: int
    nonzero: int
    x: float
    xx: float
    y: float
    yy: float
    xy: float
    u: float | None
    v: float | None
    uu: float | None
    uv: float | None
    vv: float | None
    xu: float | None
    xv: float | None
    yu: float | None
    yv: float | None


def exported_sums(stored: StoredExperiment) -> Iterator[ExportedSums]:
    """Those of every day that has begun."""
    parts = [limbs.merged(stored.parts)]
    for day in stored.so_far:
        sums = cumulated(stored.trial, parts, day)
        for metric in stored.experiment.metrics:
            for arm, of in by_arm(stored.trial, stored.ratios[metric.name], sums).items():
                yield ExportedSums(
                    *(date_of(day), metric.name, arm, of.n, of.nonzero),
                    *(_scaled(of, name, of.x_scale) for name in MOMENTS),
                    *(
                        of.before and _scaled(of.before, name, of.x_scale)
                        for name in BeforeSums.__slots__
                    ),
                )


def _scaled(sums: ArmSums | BeforeSums, name: str, unit: float) -> float:
    """A sum in units of the metric; ``unit``: what one of a numerator is worth."""
    return float(getattr(sums, name)) * unit ** sum(letter in "xu" for letter in name)
