"""Logs with experiments, and the engine's sums of them in the oracle's form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from streamer.encoding.limbs import Columns
from streamer.metrics.compared_metrics import ExperimentMeasures
from streamer.query.unit_sums import UnitReadings
from streamer.settings.durations import DAY_MS
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.experiments.caps import EDGES
from streamer.stats.experiments.trials import CompiledExperiment, cumulated
from tests.oracle.experiments import ArmTruth, ExperimentTruth
from tests.oracle.oracle import records_of_log
from tests.oracle.random_arms import with_arms
from tests.oracle.random_experiments import settled, with_experiments
from tests.oracle.random_log import random_log
from tests.oracle.random_units import with_units
from tests.oracle.shape import Record
from tests.support.agreement import SETTINGS
from tests.support.engines import Engines, LogRecord, chunks_of

NAMES = [name for name, settings in SETTINGS.items() if settings.dimensions]
"""Settings that can have experiments."""


def with_log(seed: int, name: str, lines: int, partitions: int) -> tuple[Settings, list[Record]]:
    """Random settings of experiments, about half of which read arms of fields and of events of
    exposures, some with stores or slots of time as units, and a random log most of whose users keep
    to an arm."""
    base = SETTINGS[name]
    log = settled(random_log(seed, base, lines), base, Random(seed))
    settings = with_experiments(base, log, Random(seed))
    settings, log = with_arms(settings, log, Random(f"{name} {seed}"))
    settings, log = with_units(settings, log, Random(f"units {name} {seed}"))
    return settings, records_of_log(log, settings, partitions=partitions)


def run_in_passes(
    settings: Settings, partitions: int, log: Sequence[LogRecord], size: int, seed: int
) -> Engines:
    """As ``run_engines``, but the sums over users are brought up to date on the way, too."""
    engines, dice = Engines(settings, partitions), Random(seed)
    for chunk in chunks_of(log, size, seed):
        engines.feed(chunk)
        if dice.random() < 0.3:
            engines.partitions[chunk.partition].refresh_user_sums()
    engines.finish()
    return engines


def truth_from(measures: ExperimentMeasures, views: Sequence[View]) -> ExperimentTruth:
    """What readers see of every experiment on every day."""
    truth = ExperimentTruth()
    stream_ms = max(v.header.stream_ms for v in views)
    readings = UnitReadings().of(measures.settings, measures, views)
    for trial in measures.trials:
        parts = [part for v in views if (part := v.experiments.of(trial)) is not None]
        if trial.unit is not None:
            parts = list(readings[trial.unit].parts(trial))
        for day in range(trial.days.start, min(stream_ms // DAY_MS + 1, trial.days.stop)):
            none, *arms = cumulated(trial, parts, day).counts
            truth.active[trial.name, day] = sum(counts["active"] for counts in arms)
            truth.mixed[trial.name, day] = none["mixed"]
            truth.outside[trial.name, day] = none["early"], none["unexposed"]
            for (metric, arm), sums in arms_of(trial, parts, day).items():
                truth.sums[trial.name, metric, arm, day] = sums
            for (metric, arm), moments in composites_of(trial, parts, day).items():
                truth.moments[trial.name, metric, arm, day] = moments
    return truth


def composites_of(
    trial: CompiledExperiment, parts: Sequence[Columns], day: int
) -> dict[tuple[str, str], dict[str, int]]:
    """(composite, arm) → the sums up to a day."""
    found = {}
    sums = cumulated(trial, parts, day)
    for measure in (measure for measure in trial.measures if measure.parts):
        its = zip(trial.arms, sums.counts[1:], sums.measures[measure.key].arms, strict=True)
        for arm, counts, moments in its:
            found[measure.name, arm] = {n: int(x) for n, x in moments.items()}
            found[measure.name, arm]["n"] = counts["users"]
    return found


def arms_of(
    trial: CompiledExperiment, parts: Sequence[Columns], day: int
) -> dict[tuple[str, str], ArmTruth]:
    """(metric, arm) → the sums up to a day."""
    found = {}
    sums = cumulated(trial, parts, day)
    for measure in (measure for measure in trial.measures if not measure.parts):
        of_measure = sums.measures[measure.key]
        users = of_measure.users or [{} for _ in trial.arms]
        its = zip(trial.arms, sums.counts[1:], of_measure.arms, users, strict=True)
        for arm, counts, moments, by_bucket in its:
            buckets = Counter[int]()
            for bucket, n in by_bucket.items():
                buckets[EDGES[bucket] if bucket < len(EDGES) else 0] += n  # what is below 0 mirrors
            edges = tuple(sorted((edge, n) for edge, n in buckets.items() if n))
            exact: dict[str, Any] = dict(moments)
            found[measure.key, arm] = ArmTruth(counts["users"], edges=edges, **exact)
    return found
