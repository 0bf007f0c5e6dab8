"""The readout of an experiment: the values, lifts and sentences that the terminal, the page, the
report, the API and Python lay out. Its JSON is that of the API."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from typing import Any, TypeVar

from msgspec import UNSET, Struct, UnsetType

from streamer.encoding import limbs
from streamer.formatting import counted, margin, percent, share, value_text
from streamer.metrics.compared_metrics import ComparedRatio
from streamer.query.experiment_metrics import JudgedMetric, MetricSums, Wait
from streamer.query.experiments import (
    Data,
    JudgedExperiment,
    Outside,
    StoredExperiment,
    unit_words,
)
from streamer.query.losses import ArmLoss, losses_of
from streamer.query.notes import Note, note_of_decision, notes_of
from streamer.query.pills import BAD, GOOD, OPEN, Pill, advice_pill, verdict_pill
from streamer.query.shown_lift import ShownLift, shown_lift
from streamer.settings import limits
from streamer.settings.durations import date_of
from streamer.settings.experiments import Experiment
from streamer.stats.experiments.estimate import Estimate
from streamer.stats.experiments.readout import (
    Adjustment,
    Arm,
    Comparison,
    MetricComparisons,
)
from streamer.stats.experiments.recommendation import Action, Recommendation
from streamer.stats.experiments.srm import Split
from streamer.stats.experiments.verdict import Outcome, Scale

T = TypeVar("T")


class ComparisonStatistic(Struct, frozen=True):
    """Something else that is known of a comparison. ``value``: its number, where it is one."""

    name: str
    title: str
    text: str
    value: float | None = None


class ArmReading(Struct, frozen=True):
    """A metric in one arm; ``text``: its value as it is shown."""

    name: str
    users: int
    value: float | None
    stderr: float | None
    reason: str
    text: str


@dataclass(frozen=True)
class ComparisonReading(Comparison):
    """A treatment against the control by one metric. ``lift`` is what a face shows."""

    lift: ShownLift
    pill: Pill
    statistics: Sequence[ComparisonStatistic]
    waits: Sequence[Wait]


class AgeReading(Struct, frozen=True):
    """The primary metric of users as long after their exposure."""

    age: str
    arms: Sequence[ArmReading]
    comparisons: Sequence[ComparisonReading]


@dataclass(frozen=True, kw_only=True)
class MetricReading(MetricSums):
    """One metric of an experiment. ``counts``: what its numerator counts, a noun; ``rule``: what
    is better and what is tolerated."""

    title: str
    counts: str
    rule: str
    arms: Sequence[ArmReading]
    comparisons: Sequence[ComparisonReading]
    ages: Sequence[AgeReading]

    def of(self, arm: str) -> ComparisonReading:
        """The comparison of a treatment."""
        return next(each for each in self.comparisons if each.arm == arm)

    def value(self, arm: str) -> ArmReading:
        """An arm."""
        return next(each for each in self.arms if each.name == arm)


@dataclass(frozen=True, kw_only=True)
class Advice(Recommendation):
    """What to do, in a few words (``sentence``) and as a pill."""

    sentence: str
    pill: Pill


class GuardrailsHeld(Struct, frozen=True):
    """How many guardrails hold, of how many; ``kind``: that of a pill."""

    held: int
    count: int
    kind: str
    text: str


class DayProgress(Struct, frozen=True):
    """Days with users that are over, of how many it may take (None: not known), and the least."""

    days: int
    of: int | None
    least: int
    text: str
    words: str

    @property
    def share(self) -> float:
        """How far it is.

        >>> DayProgress(15, 20, 7, "", "").share
        0.75
        """
        return min(1.0, self.days / max(self.of or self.least, 1))


class DayReading(Struct, frozen=True):
    """The lifts by metric and treatment as they stood at the end of a day, in the scale of the last
    day's."""

    day: datetime.date
    users: Mapping[str, int]
    metrics: Mapping[str, Mapping[str, Estimate]]


class Readout(Struct, frozen=True, kw_only=True):
    """An experiment from ``first`` to ``last``, both days included; ``last`` is None before the
    first. ``focus``: the treatment that is advised, or else the best so far. ``history`` is read
    where it is asked for."""

    name: str
    title: str
    hypothesis: str
    owner: str
    url: str
    who: str
    when: str
    dimension: str | None
    arm: Sequence[str]
    unit: str
    control: str
    treatments: Sequence[str]
    focus: str
    start: datetime.date
    end: datetime.date | None
    alpha: float
    covariate_days: int
    min_days: int
    decide: str
    planned_users: int | None
    first: datetime.date
    last: datetime.date | None
    users: Mapping[str, int]
    users_in_several_arms: int
    users_in_several_arms_ratio: float
    outcomes: str
    outside: Outside | None
    data: Data | None
    days: DayProgress | None
    split: Split
    guardrails: GuardrailsHeld | None
    recommendation: Advice | None
    notes: Sequence[Note]
    user_sample_ratio: float
    counted_since_ms: int | None
    metrics: Sequence[MetricReading]
    method: str
    history: Sequence[DayReading] | UnsetType = UNSET

    @property
    def primary(self) -> MetricReading:
        """The metric that decides."""
        return next(metric for metric in self.metrics if metric.role == "primary")

    @property
    def users_words(self) -> str:
        """How many users each arm has."""
        return ", ".join(f"{arm} {users:,}" for arm, users in self.users.items())


def readout_of(
    stored: StoredExperiment, found: JudgedExperiment, *, with_history: bool = False
) -> Readout:
    """That of an experiment; ``with_history``: and of each day."""
    experiment = found.experiment
    advice = found.recommendation
    return with_more(
        Readout,
        *(experiment, found),
        title=experiment.title or experiment.name,
        who=_who(experiment),
        when=_when(found),
        dimension=experiment.dimension or None,
        arm=list(stored.trial.exposure.paths),
        unit=unit_words(experiment) or "user",
        treatments=[arm for arm in experiment.arms if arm != experiment.control],
        users=dict(found.users),
        users_in_several_arms_ratio=found.several_arms_ratio,
        days=progress(found),
        split=found.metrics[0].found.split,
        guardrails=guardrails_held(found),
        recommendation=None if advice is None else advice_of(advice),
        notes=[
            *notes_of(found, stored.odd_days(found)),
            *map(note_of_decision, stored.acted),
        ],
        metrics=[_metric(experiment, m, stored.ratios) for m in found.metrics],
        method=_method(experiment),
        history=list(_history(stored)) if with_history else UNSET,
    )


def advice_of(advice: Recommendation) -> Advice:
    """What to do."""
    return with_more(Advice, advice, sentence=advice.words, pill=advice_pill(advice))


def guardrails_held(found: JudgedExperiment) -> GuardrailsHeld | None:
    """How many guardrails hold; None without any."""
    guards = [metric for metric in found.metrics if metric.role == "guardrail"]
    outcomes = [c.verdict.outcome for metric in guards for c in metric.found.comparisons]
    if not outcomes:
        return None
    held = sum(outcome in (Outcome.NO_HARM, Outcome.BETTER) for outcome in outcomes)
    is_harmed = any(outcome in (Outcome.HARM, Outcome.WORSE) for outcome in outcomes)
    kind = BAD if is_harmed else GOOD if held == len(outcomes) else OPEN
    return GuardrailsHeld(held, len(outcomes), kind, f"{held} of {len(outcomes)} held")


def progress(found: JudgedExperiment) -> DayProgress | None:
    """How far an experiment is; None without a user."""
    experiment = found.experiment
    if found.data is None:
        return None
    days, of = found.data.days, _days_in_all(found, found.data.days)
    if of is None or of <= days:
        words = found.data.words
        return DayProgress(days, of, experiment.min_days, str(days), words[0].upper() + words[1:])
    text = f"{days} of {'about ' * (experiment.end is None)}{of}"
    return DayProgress(days, of, experiment.min_days, text, f"Day {text}")


def _days_in_all(found: JudgedExperiment, days: int) -> int | None:
    """Until its end, or as long as its advice waits."""
    experiment, advice = found.experiment, found.recommendation
    if experiment.end is not None:
        return max(days, (experiment.end - experiment.start).days + 1)
    is_waiting = advice is not None and advice.action in (Action.WAIT, Action.KEEP_RUNNING)
    if not is_waiting or advice is None or advice.days is None:
        return None
    return days + advice.days


# Metrics ---------------------------------------------------------------------------------------


def _metric(
    experiment: Experiment, metric: JudgedMetric, ratios: Mapping[str, ComparedRatio]
) -> MetricReading:
    of = ratios[metric.name]
    losses = {each.arm: each for each in losses_of(experiment, [metric], ratios)}
    return MetricReading(
        **{field.name: getattr(metric, field.name) for field in fields(MetricSums)},
        title=of.title,
        counts=of.noun,
        rule=_rule(metric),
        arms=[_arm(metric, arm) for arm in metric.found.arms],
        comparisons=[
            _comparison(
                experiment, metric, metric.found, comparison, waits, losses.get(comparison.arm)
            )
            for comparison, waits in zip(metric.found.comparisons, metric.waits, strict=True)
        ],
        ages=[
            AgeReading(
                age,
                [_arm(metric, arm) for arm in its.arms],
                [_comparison(experiment, metric, its, each) for each in its.comparisons],
            )
            for age, its in metric.ages.items()
        ],
    )


def _arm(metric: JudgedMetric, arm: Arm) -> ArmReading:
    text = "–" if arm.shown is None else value_text(metric.form, arm.shown)
    return ArmReading(arm.name, arm.users, arm.shown, arm.stderr, arm.reason, text)


def _comparison(
    experiment: Experiment,
    metric: JudgedMetric,
    its: MetricComparisons,
    comparison: Comparison,
    waits: Sequence[Wait] = (),
    loss: ArmLoss | None = None,
) -> ComparisonReading:
    """``its``: of all users or of an age."""
    limit = metric.margin
    if limit is not None and metric.direction == "higher":
        limit = -limit
    return with_more(
        ComparisonReading,
        comparison,
        lift=shown_lift(its, comparison, metric.form, limit),
        pill=verdict_pill(comparison.verdict.outcome),
        statistics=list(_statistics(experiment, comparison, waits, loss)),
        waits=list(waits),
    )


def with_more(made: Callable[..., T], *of: object, **more: Any) -> T:
    """What has the fields ``more``, and of its others those that ``of`` have."""
    return made(
        **{
            name: getattr(each, name)
            for each in of
            for name in signature(made).parameters
            if name not in more and hasattr(each, name)
        },
        **more,
    )


def _statistics(
    experiment: Experiment,
    comparison: Comparison,
    waits: Sequence[Wait],
    loss: ArmLoss | None,
) -> Iterator[ComparisonStatistic]:
    """What is known of a comparison besides its lift; each face shows all of it."""
    if (made := comparison.adjustment) is not None:
        yield ComparisonStatistic(
            "adjustment", "Days before", _adjustment(experiment, made), made.explained
        )
    least = comparison.detectable.relative
    if least is not None:
        users = counted(comparison.users, "user")
        text = f"With {users}, changes above {share(least)} are found reliably."
        yield ComparisonStatistic("detectable", "Detectable now", text, least)
    if loss is not None:
        yield ComparisonStatistic("loss", "Lost so far", loss.words, loss.loss.value)
    if waits:
        text = "; ".join(f"{share(w.effect)}: {_days(w.days)}" for w in waits)
        yield ComparisonStatistic("waits", "Days until a change would be found", f"{text}.")


def _history(stored: StoredExperiment) -> Iterator[DayReading]:
    last = stored.last_day
    if last is None:
        return
    stored = replace(stored, parts=[limbs.merged(stored.parts)])
    scales = {
        (metric.name, c.arm): c.verdict.scale
        for metric in stored.read().metrics
        for c in metric.found.comparisons
    }
    first = max(stored.trial.days.start, last + 1 - limits.MAX_HISTORY_DAYS)
    for day in range(first, last + 1):
        as_of = stored.read(day)
        metrics = {
            metric.name: {
                c.arm: c.relative if scales[metric.name, c.arm] is Scale.RELATIVE else c.absolute
                for c in metric.found.comparisons
            }
            for metric in as_of.metrics
        }
        yield DayReading(date_of(day), dict(as_of.users), metrics)


# Sentences -------------------------------------------------------------------------------------


def _who(experiment: Experiment) -> str:
    treatments = ", ".join(arm for arm in experiment.arms if arm != experiment.control)
    where = f" ({experiment.dimension})" if experiment.dimension else ""
    return f"{treatments} against {experiment.control}{where}"


def _when(found: JudgedExperiment) -> str:
    experiment = found.experiment
    if found.last is None:
        return f"starts on {found.first}"
    much = "no user yet" if found.data is None else found.data.words
    is_over = experiment.end is not None and found.last >= experiment.end
    until = "" if experiment.end is None or is_over else f", planned until {experiment.end}"
    return f"{found.first} to {found.last}, {much}{until}"


def _rule(metric: JudgedMetric) -> str:
    tolerated = []
    if metric.margin is not None:
        tolerated.append(share(metric.margin))
    if metric.margin_absolute is not None:
        tolerated.append(margin(metric.form, metric.margin_absolute))
    rule = f"{metric.direction} is better"
    if not tolerated:
        return rule
    verb = "fall" if metric.direction == "higher" else "rise"
    return f"{rule}, may {verb} by up to {' and '.join(tolerated)}"


def _adjustment(experiment: Experiment, made: Adjustment) -> str:
    """What was taken out of a lift."""
    if made.explained is None:
        return f"The lift is not adjusted (CUPED): {made.reason}."
    before = counted(experiment.covariate_days, "day")
    return (
        f"The lift and its ranges are adjusted (CUPED): behaviour in the {before} before the "
        f"start explains {percent(made.explained)} of the variance."
    )


def _days(days: int | None) -> str:
    if days is None:
        return "beyond the forecast"
    return f"{days:,} more" if days else "now"


def _method(experiment: Experiment) -> str:
    return (
        "Users are the unit of analysis. An arm's value is the total of its users' numerators "
        "divided by the total of their denominators (for CTR, clicks by impressions). The delta "
        f"method gives variances{_before(experiment.covariate_days)}. Percentages are relative to "
        "the control. A range that is safe to check daily holds at level "
        f"{share(1 - experiment.alpha)} however often you look; that of one look holds once, at an "
        "end date set in advance. Several arms share alpha (Holm), and so do the secondary "
        "metrics. An arm is shipped if the primary metric is better and no guardrail is worse than "
        "tolerated. How often each sentence is false: docs/claims.md."
    )


def _before(days: int) -> str:
    """What CUPED adds to the method, of so many days before the start."""
    if not days:
        return ""
    what = "day" if days == 1 else f"{days} days"
    return f", and the {what} before the start reduce{'s' if days == 1 else ''} them (CUPED)"
