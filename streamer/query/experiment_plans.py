"""What the users of today say of an experiment that has not begun: their metric, their number."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamer.encoding.limbs import Columns
from streamer.query.experiment_metrics import by_arm
from streamer.query.experiments import StoredExperiment, users_of
from streamer.settings.durations import DAY_MS, date_of
from streamer.stats.experiments.duration import HalfTime
from streamer.stats.experiments.forecast import Growth
from streamer.stats.experiments.sums import ArmSums
from streamer.stats.experiments.trials import cumulated


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """Sums of a metric over the users of a control arm, the days that they were seen on, and how
    it was at half of them, with the users of all arms; None below two days. ``counted_since_ms``:
    where something is counted only since then."""

    users: ArmSums
    first: datetime.date
    last: datetime.date
    half: HalfTime | None
    user_sample_ratio: float
    counted_since_ms: int | None


def before_start(stored: StoredExperiment, parts: Sequence[Columns] = ()) -> StoredExperiment:
    """The days of its covariates as an experiment of their own, in whose control everybody is.
    ``parts``: the sums of ``DaysBefore`` in every partition."""
    return replace(stored, trial=stored.trial.before, parts=parts)


def basis_of(stored: StoredExperiment, metric: str) -> PlanBasis | None:
    """What is stored of a metric of an experiment; None before the first user came."""
    last, first = stored.last_day, next(iter(stored.days_with_users), None)
    if last is None or first is None:
        return None
    end = min(stored.stream_ms / DAY_MS, float(stored.trial.days.stop))
    return PlanBasis(
        _users(stored, metric, last),
        date_of(first),
        date_of(last),
        _half_time(stored, metric, range(first, last + 1), end - first),
        stored.user_sample_ratio,
        stored.counted_since_ms,
    )


def _users(stored: StoredExperiment, metric: str, day: int) -> ArmSums:
    """Those of the control, up to the end of a day."""
    sums = cumulated(stored.trial, stored.parts, day)
    return by_arm(stored.trial, stored.ratios[metric], sums)[stored.trial.arms[0]]


def _half_time(stored: StoredExperiment, metric: str, seen: range, days: float) -> HalfTime | None:
    """``days``: from the first of those seen until now."""
    half = int(days) // 2
    if not half:
        return None
    day = seen[half - 1]
    then, now = (users_of(stored.trial, stored.parts, each) for each in (day, seen[-1]))
    return HalfTime(Growth(half, then, days, now), _users(stored, metric, day)) if now else None
