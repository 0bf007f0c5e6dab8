"""An experiment split by a dimension other than its arms, for ideas and not for decisions.

Each user belongs to one value: that of most of their impressions of the arm on the first day with
any. So values add up to the whole. The values share the experiment's ``alpha``
(Bonferroni): the chance that any value claims an effect where there is none stays below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import msgspec

from streamer.encoding.limbs import Columns
from streamer.formatting import counted
from streamer.query.experiments import JudgedExperiment, StoredExperiment
from streamer.query.readout import Readout, readout_of, with_more
from streamer.query.segment_index import values_shown
from streamer.settings.durations import day_of
from streamer.settings.experiments import Experiment
from streamer.settings.labels import OTHER
from streamer.settings.limits import MAX_FOUND_CHARS
from streamer.settings.model import Settings
from streamer.state.snapshot import View
from streamer.state.user_days import DAY
from streamer.stats.experiments.estimate import Lifts
from streamer.stats.experiments.heterogeneity import Heterogeneity, heterogeneity


@dataclass(frozen=True)
class SegmentTest(Heterogeneity):
    """Whether the lift of a treatment differs between values, and that in words, which begin with
    the arm where there are several."""

    arm: str
    metric: str
    sentence: str


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """``by``: the dimension; ``alpha``: what each value has of the experiment's; ``values``: value
    → its readout, which recommends nothing and has no outcomes outside of arms; those with most
    users first. ``heterogeneity``: of the primary metric, a test for each treatment."""

    name: str
    exploration: bool = True
    by: str
    alpha: float
    words: str
    heterogeneity: Sequence[SegmentTest]
    values: Mapping[str, Readout]


def not_explored(
    experiment: Experiment, by: str, dimensions: Sequence[str], otherwise: str = ""
) -> str:
    """Why an experiment cannot be explored by a dimension, what there is, and what to do; empty
    where it can. ``otherwise``: what else to do."""
    is_plain = experiment.unit_field is None and len(experiment.periods) == 1
    is_by_day = by == DAY and by not in dimensions and is_plain
    if by in experiment.explore or is_by_day:
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
    sums: Mapping[str, list[Columns]], settings: Settings, views: Sequence[View], by: str
) -> dict[str, list[Columns]]:
    """The sums by value; those of values that are not shown are of ``other``, together."""
    if by == DAY and by not in settings.dimension_names:
        return dict(sums)
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
    own, span = replace(stored, experiment=experiment), (within.start, within.stop - 1)
    is_by_day = by == DAY and by not in experiment.explore
    found = {}
    for value, its in parts.items():
        first, last = (day_of(date.fromisoformat(value)),) * 2 if is_by_day else span
        one = own.of_parts(its, first, last)
        found[value] = replace(one, recommendation=None, outside=None)
    by_users = sorted(found, key=lambda value: (-sum(found[value].users.values()), value))
    order = sorted(found) if is_by_day else by_users
    whose = "Each user belongs to the value of most of their impressions on their first day."
    if is_by_day:
        whose = "Each day has what users who were exposed by its end did on it."
    return Exploration(
        name=experiment.name,
        by=by,
        alpha=alpha,
        words=(
            f"By {by}, for ideas and not for decisions: {counted(len(found), 'value')} share alpha "
            f"= {stored.experiment.alpha:g}, which widens ranges, and get no recommendation. "
            f"{whose} Test an idea in an experiment of its own.{_wrong_splits(found)}"
        ),
        heterogeneity=list(_tests(stored, by, {value: found[value] for value in order})),
        values={value: readout_of(stored, found[value]) for value in order},
    )


def _wrong_splits(values: Mapping[str, JudgedExperiment]) -> str:
    """Where the split is not as planned, in words."""
    splits = {value: its.metrics[0].found.split for value, its in values.items()}
    wrong = {value: each for value, each in splits.items() if each.is_wrong or each.is_unusual}
    said = "; ".join(f"{value} ({each.shares})" for value, each in wrong.items())
    return f" The split is not as planned in {said}." if said else ""


def _tests(
    stored: StoredExperiment, by: str, values: Mapping[str, JudgedExperiment]
) -> Iterator[SegmentTest]:
    """Each has alpha for itself."""
    metric, lifts = stored.experiment.primary.name, dict[str, dict[str, Lifts]]()
    for value, its in values.items():
        for comparison in its.primary.found.comparisons:
            by_value = lifts.setdefault(comparison.arm, {})
            by_value[value] = Lifts(comparison.absolute, comparison.relative)
    for arm, by_value in lifts.items():
        test = heterogeneity(by_value, stored.experiment.alpha)
        sentence = test.describe(metric, by, stored.ratios[metric].form)
        said = sentence if len(lifts) == 1 else f"{arm}: {sentence}"
        yield with_more(SegmentTest, test, arm=arm, metric=metric, sentence=said)
