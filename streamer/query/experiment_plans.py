"""What the users of today say of an experiment that has not begun: their metric, their number."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamer.encoding.limbs import Columns
from streamer.query.experiment_metrics import by_arm
from streamer.query.experiments import StoredExperiment, users_of
from streamer.settings.experiments import DAY_MS, date_of
from streamer.stats.experiments.growth import Growth
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.trials import cumulated


@dataclass(frozen=True, slots=True)
class Basis:
    """Sums of a metric over the users of a control arm, the days that they were seen on, and how
    the users of all arms have grown in them; None below two days. ``counted_since_ms``: where
    something is counted only since then."""

    users: ArmSums
    first: datetime.date
    last: datetime.date
    growth: Growth | None
    user_sample_ratio: float
    counted_since_ms: int | None


def before_start(stored: StoredExperiment, parts: Sequence[Columns] = ()) -> StoredExperiment:
    """The days of its covariates as an experiment of their own, in whose control everybody is.
    ``parts``: the sums of ``DaysBefore`` in every partition."""
    return replace(stored, trial=stored.trial.before, parts=parts)


def basis_of(stored: StoredExperiment, metric: str) -> Basis | None:
    """What is stored of a metric of an experiment; None before the first user came."""
    last, first = stored.last_day, next(iter(stored.days_with_users), None)
    if last is None or first is None:
        return None
    sums = cumulated(stored.trial, stored.parts, last)
    users = by_arm(stored.trial, stored.ratios[metric], sums)[stored.trial.arms[0]]
    end = min(stored.stream_ms / DAY_MS, float(stored.trial.days.stop))
    return Basis(
        users,
        date_of(first),
        date_of(last),
        _growth(stored, first, last, end - first),
        stored.user_sample_ratio,
        stored.counted_since_ms,
    )


def _growth(stored: StoredExperiment, first: int, last: int, days: float) -> Growth | None:
    half = int(days) // 2
    if not half:
        return None
    then, now = (users_of(stored.trial, stored.parts, day) for day in (first + half - 1, last))
    return Growth(half, then, days, now) if now else None
