"""An experiment split by a dimension other than its arms, for ideas and not for decisions.

Each user belongs to one value: that of most of their impressions of the arm on the first day with
any. So values add up to the whole. The values share the experiment's ``alpha``
(Bonferroni): the chance that any value claims an effect where there is none stays below it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from streamer.encoding.limbs import Columns
from streamer.query.experiments import JudgedExperiment, StoredExperiment
from streamer.query.segment_index import values_shown
from streamer.settings.experiments import Experiment
from streamer.settings.labels import OTHER
from streamer.settings.limits import MAX_FOUND_CHARS
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.stats.experiments.estimate import Lifts
from streamer.stats.experiments.heterogeneity import Heterogeneity, heterogeneity
from streamer.stats.experiments.readout import Comparison


@dataclass(frozen=True, slots=True)
class Exploration:
    """``by``: the dimension; ``alpha``: what each value has of the experiment's; ``values``: value
    → its readout, which recommends nothing and has
    no outcomes outside of arms; those with most users first. ``heterogeneity``: treatment → whether
    the lift of the primary metric, ``metric``, differs between the values; nothing without them."""

    by: str
    alpha: float
    values: Mapping[str, JudgedExperiment]
    metric: str
    form: str
    heterogeneity: Mapping[str, Heterogeneity]

    @property
    def sentences(self) -> dict[str, str]:
        """Treatment → what its test has found; each begins with its arm where there are several."""
        of = self.metric, self.by, self.form
        found = {arm: test.describe(*of) for arm, test in self.heterogeneity.items()}
        if len(found) < 2:
            return found
        return {arm: f"{arm}: {sentence}" for arm, sentence in found.items()}


def not_explored(
    experiment: Experiment, by: str, dimensions: Sequence[str], otherwise: str = ""
) -> str:
    """Why an experiment cannot be explored by a dimension, what there is, and what to do; empty
    where it can. ``otherwise``: what else to do."""
    if by in experiment.explore:
        return ""
    known = ", ".join(experiment.explore) or "nothing"
    has = f"experiment {experiment.name!r} has explore = {known}"
    others = [name for name in dimensions if name != experiment.dimension]
    if by in others:
        return (
            f"{has}; add {by!r} to it in [[experiments]] and restart workers and exporters"
            f"{otherwise}"
        )
    if experiment.explore:
        do = f"use one of {known}"
    else:
        do = f"add one of {', '.join(others)}" if others else "add another one to [[dimensions]]"
    return f"{has}; it cannot be explored by {by[:MAX_FOUND_CHARS]!r}: {do}"


def values_joined(
    sums: Mapping[str, Sequence[Columns]], settings: Settings, views: Sequence[View], by: str
) -> dict[str, list[Columns]]:
    """The sums by value; those of values that are not shown are of ``other``, together."""
    shown = values_shown(settings, views)[settings.dimension_names.index(by)]
    found: dict[str, list[Columns]] = {}
    for value, its in sums.items():
        found.setdefault(value if value in shown else OTHER, []).extend(its)
    return found


def explored(
    stored: StoredExperiment, by: str, parts: Mapping[str, Sequence[Columns]], within: range
) -> Exploration:
    """``parts``: value → its sums over the days ``within``, in every partition."""
    alpha = stored.experiment.alpha / max(1, len(parts))
    experiment = msgspec.structs.replace(stored.experiment, alpha=alpha)
    own = replace(stored, experiment=experiment)
    found = {
        value: replace(
            own.of_parts(its, within.start, within.stop - 1), recommendation=None, outside=None
        )
        for value, its in parts.items()
    }
    by_users = sorted(found, key=lambda value: (-sum(found[value].users.values()), value))
    values = {value: found[value] for value in by_users}
    metric = stored.experiment.primary.name
    form = stored.ratios[metric].form
    return Exploration(by, alpha, values, metric, form, _tests(stored.experiment, values))


def _tests(
    experiment: Experiment, values: Mapping[str, JudgedExperiment]
) -> dict[str, Heterogeneity]:
    """Of the primary metric: treatment → the test of its lifts, which has alpha for itself."""
    lifts: dict[str, dict[str, Lifts]] = {}
    for value, its in values.items():
        for comparison in _primary(experiment, its):
            by_value = lifts.setdefault(comparison.arm, {})
            by_value[value] = Lifts(comparison.absolute, comparison.relative)
    return {arm: heterogeneity(by_value, experiment.alpha) for arm, by_value in lifts.items()}


def _primary(experiment: Experiment, its: JudgedExperiment) -> Sequence[Comparison]:
    (metric,) = (each for each in its.metrics if each.name == experiment.primary.name)
    return metric.found.comparisons
