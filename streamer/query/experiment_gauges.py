"""Experiments as gauges: the readout of every experiment, as of now.

Every lift is the one that the verdict is about: where there are days before the start to compare
with, what was there before is taken out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from streamer.metrics.definition import Family, Sample, SeriesDeclarations
from streamer.query.counters import CounterInputs, Samples
from streamer.query.experiments import JudgedExperiment
from streamer.settings.durations import DAY_MS, day_of
from streamer.stats.experiments.estimate import Estimate, Inference
from streamer.stats.experiments.readout import Comparison
from streamer.stats.experiments.verdict import Scale

series = SeriesDeclarations[Samples]("total", "absent before the first day")
_OF_ARM = ("experiment", "metric", "arm")
_OF_LIFT = (*_OF_ARM, "interval")
_UNDEFINED = "absent where it is not defined, and before the first day"
_NO_RELATIVE = "absent where too few users count for a relative interval, and before the first day"


def _running(known: CounterInputs) -> Iterator[JudgedExperiment]:
    return (found for found in known.experiments if found.last is not None)


def _comparisons(known: CounterInputs) -> Iterator[tuple[tuple[str, str, str], Comparison]]:
    """Labels, and what was compared."""
    for found in _running(known):
        for metric in found.metrics:
            for comparison in metric.found.comparisons:
                yield (found.experiment.name, metric.name, comparison.arm), comparison


def _inferences(
    known: CounterInputs, scale: Scale
) -> Iterator[tuple[tuple[str, ...], Estimate, Inference]]:
    """Labels, the lift in that scale, and each kind of its interval."""
    for labels, comparison in _comparisons(known):
        lift = comparison.relative if scale is Scale.RELATIVE else comparison.absolute
        for interval, inference in (("fixed", lift.fixed), ("anytime", lift.anytime)):
            if inference is not None:
                yield (*labels, interval), lift, inference


series.row(
    *("experiment_users", "users", "users exposed to the arm and to no other one"),
    "Users in the comparison.",
    lambda known: (
        ((found.experiment.name, arm), users)
        for found in _running(known)
        for arm, users in found.users.items()
    ),
    labels=("experiment", "arm"),
)
series.row(
    *("experiment_users_in_several_arms", "users", "users exposed to several arms"),
    "Users seen in more than one arm. They are excluded from the whole experiment.",
    lambda known: (
        ((found.experiment.name,), found.users_in_several_arms) for found in _running(known)
    ),
    labels=("experiment",),
)


@series(
    "experiment_outside_outcomes",
    labels=("experiment", "reason"),
    formula="feedback, conversions and viewings: before_exposure of their user (attributed ones: "
    "without the arm of their user), or of unexposed users",
    unit="events",
)
def _outside(known: CounterInputs) -> Iterator[Sample]:
    """Outcomes that are ignored, because their user had not seen an arm. Outcomes of users in
    several arms are not included."""
    for found in _running(known):
        if found.outside is not None:
            yield (found.experiment.name, "before_exposure"), found.outside.before_exposure
            yield (found.experiment.name, "unexposed"), found.outside.unexposed


series.row(
    *("experiment_user_sample_ratio", "ratio", "share of the users, by hash"),
    "Share of the users in experiments, in the partition with the smallest share; 1: all users.",
    lambda known: (
        ((found.experiment.name,), found.user_sample_ratio) for found in _running(known)
    ),
    labels=("experiment",),
)


@series(
    "experiment_srm_pvalue",
    labels=("experiment", "interval"),
    formula="fixed: Pearson's chi-squared; anytime: 1 / Bayes factor",
    unit="probability",
)
def _split(known: CounterInputs) -> Iterator[Sample]:
    """Probability of a split at least as uneven under the planned shares. `anytime` holds at every
    look."""
    for found in _running(known):
        split = found.metrics[0].found.split
        yield (found.experiment.name, "fixed"), split.p_value_fixed
        yield (found.experiment.name, "anytime"), split.p_value


@series(
    "experiment_value",
    labels=_OF_ARM,
    formula="sum of the numerators / sum of the denominators, over the users of the arm",
    unit="as the metric",
    empty=_UNDEFINED,
)
def _value(known: CounterInputs) -> Iterator[Sample]:
    """The metric in an arm, since the start of the experiment."""
    for found in _running(known):
        for metric in found.metrics:
            for arm in metric.found.arms:
                if arm.shown is not None:
                    yield (found.experiment.name, metric.name, arm.name), arm.shown


def _gauge(
    name: str,
    doc: str,
    read: Callable[[Estimate, Inference], float | None],
    *,
    formula: str,
    unit: str = "ratio",
    scale: Scale = Scale.RELATIVE,
) -> None:
    """Declare one value of every lift, beside each kind of its interval."""
    empty = _NO_RELATIVE if scale is Scale.RELATIVE else _UNDEFINED

    def samples(known: CounterInputs) -> Iterator[Sample]:
        for labels, lift, inference in _inferences(known, scale):
            value = read(lift, inference)
            assert value is not None
            yield labels, value

    series(name, labels=_OF_LIFT, formula=formula, unit=unit, empty=empty, doc=doc)(samples)


_difference = partial(_gauge, unit="as the metric", scale=Scale.ABSOLUTE)
_gauge(
    "experiment_lift_ratio",
    "Relative lift of an arm over the control (the same for both intervals).",
    lambda lift, _: lift.value,
    formula="value of the arm / value of the control - 1",
)
_gauge(
    "experiment_lower_ratio",
    "Lower end of the lift's interval. `fixed` holds at one look, `anytime` at every look.",
    lambda _, inference: inference.low,
    formula="lower end of the interval of the lift",
)
_gauge(
    "experiment_upper_ratio",
    "Upper end of the lift's interval.",
    lambda _, inference: inference.high,
    formula="upper end of the interval of the lift",
)
_gauge(
    "experiment_pvalue",
    "p-value of the lift, corrected over the arms of the metric.",
    lambda _, inference: inference.p_adjusted,
    formula="probability of at least this lift without an effect; Holm over the arms",
    unit="probability",
    scale=Scale.ABSOLUTE,
)
_difference(
    "experiment_difference",
    "Value of an arm minus the value of the control (the same for both intervals).",
    lambda lift, _: lift.value,
    formula="value of the arm - value of the control",
)
_difference(
    "experiment_difference_lower",
    "Lower end of the difference's interval. It is above 0 exactly if the lift's lower end is.",
    lambda _, inference: inference.low,
    formula="lower end of the interval of the difference",
)
_difference(
    "experiment_difference_upper",
    "Upper end of the difference's interval.",
    lambda _, inference: inference.high,
    formula="upper end of the interval of the difference",
)
series.row(
    *("experiment_verdict", "1", "1 for the verdict that holds"),
    "The verdict on an arm, by one metric.",
    lambda known: (
        ((*labels, str(comparison.verdict.outcome)), 1)
        for labels, comparison in _comparisons(known)
    ),
    labels=(*_OF_ARM, "verdict"),
    empty="absent for the other verdicts",
)


@series(
    "experiment_recommendation",
    labels=("experiment", "recommendation", "arm"),
    formula="1 for the recommendation that holds",
    unit="1",
    empty="absent for the others, and before the first day",
)
def _recommendation(known: CounterInputs) -> Iterator[Sample]:
    """The recommended action: `ship`, `wait`, `stop: harm`, `stop: no effect worth shipping`, `keep
    running`, `ended without a decision`, `do not use: broken split`, `do not use: users in several
    arms`, `do not use: the effect changed` or, for a holdout, `holdout`. `arm` is the arm to ship
    or the harmful one, else empty."""
    for found in known.experiments:
        if (advice := found.recommendation) is not None:
            yield (found.experiment.name, str(advice.action), advice.arm or ""), 1


series.row(
    *("experiment_decided_timestamp_seconds", "epoch seconds", "the day of the first decision"),
    "When the decision that counts was taken: the beginning of its day, UTC.",
    lambda known: (
        ((found.experiment.name,), day_of(found.recommendation.since) * DAY_MS / 1000)
        for found in known.experiments
        if found.recommendation is not None and found.recommendation.since is not None
    ),
    labels=("experiment",),
    empty="absent before a decision of an earlier day",
)

FAMILY = Family("experiments", tuple(series.series))
