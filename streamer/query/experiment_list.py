"""All experiments together: their readouts, discoveries among them, and the list by what needs a
decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import msgspec

from streamer import formatting
from streamer.encoding.limbs import Columns
from streamer.errors import UsageError
from streamer.query.experiment_metrics import MetricReadout, focus_of, plan_of, rule_of
from streamer.query.experiments import ExperimentReadout, StoredExperiment
from streamer.query.lift_scale import LiftScale
from streamer.query.readout_document import shown
from streamer.query.scorecard import (
    ShownLift,
    advice_pill,
    days_in_all,
    guardrails_held,
    lift_of,
    side,
)
from streamer.query.sparing import Sparing
from streamer.settings.model import Settings
from streamer.settings.names import nearest
from streamer.stats.experiments.discoveries import Candidate, Discovery, candidate, discoveries
from streamer.stats.experiments.readout import Comparison
from streamer.stats.experiments.recommendation import DISTRUST, Action
from streamer.stats.experiments.verdict import Scale

NEEDS: Mapping[str, Sequence[Action]] = {
    "harm": (Action.STOP_HARM,),
    "broken": DISTRUST,
    "ship": (Action.SHIP,),
    "no-effect": (Action.STOP_NO_EFFECT, Action.UNDECIDED),
    "running": (Action.WAIT, Action.KEEP_RUNNING),
    "holdout": (Action.MEASURE,),
}
"""What an experiment needs, in a word, the most urgent first → recommendations of that kind."""
NOT_STARTED = "not-started"
WORDS = (*NEEDS, NOT_STARTED)


@dataclass(frozen=True, slots=True)
class ListedExperiment:
    """An experiment of the list. ``discoveries``: by treatment, where a false discovery rate is
    set."""

    stored: StoredExperiment
    readout: ExperimentReadout
    discoveries: Mapping[str, Discovery]

    @property
    def needs(self) -> str:
        """What it needs, in a word."""
        found = self.readout.recommendation
        if found is None:
            return NOT_STARTED
        return next(word for word, actions in NEEDS.items() if found.action in actions)

    @property
    def primary(self) -> MetricReadout:
        """The primary metric."""
        name = self.readout.experiment.primary.name
        return next(metric for metric in self.readout.metrics if metric.name == name)

    @property
    def comparison(self) -> Comparison:
        """The treatment that the recommendation is about, or else the one that is best so far."""
        advice = self.readout.recommendation
        by_arm = {each.arm: each for each in self.primary.found.comparisons}
        lifts = {arm: each.deciding.absolute.value for arm, each in by_arm.items()}
        advised = None if advice is None else advice.arm
        return by_arm[focus_of(advised, lifts, self.primary.direction)]


def listed(
    settings: Settings, stored: Mapping[str, StoredExperiment], readouts: Readouts
) -> list[ListedExperiment]:
    """All experiments: what does harm first, then wrong splits, then what is to be shipped."""
    found = readouts.of(settings, stored)
    made = readouts.discoveries
    every = [
        ListedExperiment(
            stored[name],
            readout,
            {each.candidate.arm: each for each in made if each.candidate.experiment == name},
        )
        for name, readout in found.items()
        if name in stored
    ]
    return sorted(every, key=lambda each: (WORDS.index(each.needs), each.stored.experiment.name))


@dataclass(frozen=True, slots=True)
class _Kept:
    """A readout, and what it was made of."""

    of: tuple[object, ...]
    parts: Sequence[Columns]
    readout: ExperimentReadout


class Readouts:
    """The readouts of all experiments. They are made again where sums changed, sparingly."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """``clock``: seconds; without one they are made whenever sums changed."""
        self._sparing = Sparing(clock)
        self._kept: dict[str, _Kept] = {}
        self._found: dict[str, ExperimentReadout] = {}
        self.discoveries: Sequence[Discovery] = ()
        """Of all treatments, where a false discovery rate is set."""

    def of(
        self, settings: Settings, stored: Mapping[str, StoredExperiment]
    ) -> Mapping[str, ExperimentReadout]:
        """Name → readout."""
        if self._found and not self._sparing.may_begin:
            return self._found
        with self._sparing.timed():
            found = {name: self._read(name, its) for name, its in stored.items()}
            self._kept = {name: self._kept[name] for name in stored}
            rate = settings.experiments_defaults.false_discovery_rate
            self.discoveries = () if rate is None else discovered(stored, found, rate)
            self._found = dict(_with_discoveries(found, self.discoveries))
        return self._found

    def _read(self, name: str, stored: StoredExperiment) -> ExperimentReadout:
        parts = stored.parts
        minute = stored.stream_ms // 60_000
        of = (stored.trial.shape, stored.experiment, minute, *map(id, parts))
        kept = self._kept.get(name)
        if kept is None or kept.of != of:
            kept = self._kept[name] = _Kept(of, parts, stored.read())
        return kept.readout


def read_one(
    settings: Settings, stored: Mapping[str, StoredExperiment], name: str, readouts: Readouts
) -> ExperimentReadout:
    """The readout of one experiment: by itself, or as one of all, where a false discovery rate is
    set."""
    if settings.experiments_defaults.false_discovery_rate is None:
        return stored[name].read()
    return readouts.of(settings, stored)[name]


def unknown_experiment(name: str, stored: Mapping[str, StoredExperiment]) -> str:
    """That there is none of this name, and which there are."""
    near = nearest(name, stored)
    hint = f"; did you mean {near!r}?" if near else f"; there are {', '.join(stored) or 'none'}"
    return f"no experiment {name!r}{hint}"


def discovered(
    stored: Mapping[str, StoredExperiment], found: Mapping[str, ExperimentReadout], rate: float
) -> list[Discovery]:
    """Every treatment of every experiment that has begun, among all of them."""
    return discoveries(list(_candidates(stored, found)), rate)


def _candidates(
    stored: Mapping[str, StoredExperiment], found: Mapping[str, ExperimentReadout]
) -> Iterator[Candidate]:
    for name, readout in found.items():
        advice, experiment = readout.recommendation, readout.experiment
        if advice is None or experiment.holdout:
            continue
        plan = plan_of(experiment, is_over=stored[name].is_over)
        primary = next(m for m in readout.metrics if m.name == experiment.primary.name)
        rule = rule_of(experiment, experiment.primary, stored[name].ratios[primary.name])
        for comparison in primary.found.comparisons:
            may_ship = advice.action is Action.SHIP and advice.arm == comparison.arm
            yield candidate(name, plan, rule, comparison, is_eligible=may_ship)


def _with_discoveries(
    found: Mapping[str, ExperimentReadout], made: Sequence[Discovery]
) -> Iterator[tuple[str, ExperimentReadout]]:
    """A treatment that is better by itself, and no discovery among all, is not shipped."""
    by_arm = {(each.candidate.experiment, each.candidate.arm): each for each in made}
    for name, readout in found.items():
        advice = readout.recommendation
        discovery = None
        if advice is not None and advice.action is Action.SHIP:
            discovery = by_arm.get((name, advice.arm or ""))
        if advice is None or discovery is None or discovery.is_made:
            yield name, readout
            continue
        reason = (
            f"{advice.reason} By itself, {advice.arm} would be shipped. Among the {len(made)} "
            f"treatments of all experiments it is not a discovery yet: it {discovery.words}."
        )
        held = replace(advice, action=Action.KEEP_RUNNING, reason=reason, days=None, since=None)
        yield name, replace(readout, recommendation=held)


# Documents -------------------------------------------------------------------------------------


def only(every: Sequence[ListedExperiment], word: str | None) -> list[ListedExperiment]:
    """Those that need this; UsageError where it is no word of ``WORDS``."""
    if word is not None and word not in WORDS:
        raise UsageError(f"only {word!r}: one of {', '.join(WORDS)}")
    return [each for each in every if word in (None, each.needs)]


def list_document(settings: Settings, every: Sequence[ListedExperiment]) -> dict[str, Any]:
    """The JSON of the list."""
    counts = {word: sum(each.needs == word for each in every) for word in WORDS}
    lifts = {each.stored.experiment.name: _lift(each) for each in every}
    scale = LiftScale.of([lift for lift in lifts.values() if lift is not None])
    return {
        "false_discovery_rate": settings.experiments_defaults.false_discovery_rate,
        "needs": counts,
        "scale": msgspec.to_builtins(scale.ticks()),
        "experiments": [
            _row(settings, each) | _drawn(scale, lifts[each.stored.experiment.name])
            for each in every
        ],
    }


def _lift(each: ListedExperiment) -> ShownLift | None:
    """The lift of the primary metric, as it is drawn."""
    if each.readout.recommendation is None:
        return None
    experiment, primary = each.stored.experiment, each.primary
    form = each.stored.ratios[primary.name].form
    plan = plan_of(experiment, is_over=each.stored.is_over)
    comparison = shown(plan, each.comparison, primary.found.arms)
    metric = {"form": form, "direction": primary.direction, "margin": None}
    return lift_of(comparison, metric, side(comparison, metric))


def _drawn(scale: LiftScale, lift: ShownLift | None) -> dict[str, Any]:
    if lift is None:
        return {}
    bar = scale.bar(lift)
    return {
        "change": {"text": lift.text, "range": lift.range, "kind": lift.kind},
        "bar": None if bar is None else msgspec.to_builtins(bar),
    }


def _row(settings: Settings, each: ListedExperiment) -> dict[str, Any]:
    experiment, readout = each.stored.experiment, each.readout
    row: dict[str, Any] = {
        "name": experiment.name,
        "title": experiment.title or experiment.name,
        "owner": experiment.owner,
        "key": experiment.called,
        "is_found": each.stored.is_found,
        "dimension": experiment.dimension or None,
        "arm": settings.arm_paths_of(experiment) or None,
        "control": experiment.control,
        "arms": experiment.arms,
        "start": experiment.start,
        "end": experiment.end,
        "explore": experiment.explore,
        "needs": each.needs,
    }
    if (advice := readout.recommendation) is None:
        return row
    comparison, primary = each.comparison, each.primary
    discovery = each.discoveries.get(comparison.arm)
    guardrails = {
        metric.name: [c.verdict.outcome for c in metric.found.comparisons]
        for metric in readout.metrics
        if metric.role == "guardrail"
    }
    return row | {
        "pill": msgspec.to_builtins(advice_pill(msgspec.to_builtins(advice))),
        "advice": advice.words,
        "reason": advice.reason,
        "since": advice.since,
        "users": sum(readout.users.values()),
        "users_in_several_arms_ratio": readout.several_arms_ratio,
        "days": None if readout.data is None else readout.data.days,
        "days_in_all": None
        if readout.data is None
        else days_in_all(
            *(readout.data.days, experiment.start, experiment.end),
            *(advice.action, advice.days),
        ),
        "metric": primary.name,
        "metric_title": each.stored.ratios[primary.name].title,
        "treatment": comparison.arm,
        "scale": comparison.verdict.scale,
        "lift": msgspec.to_builtins(comparison.shown),
        "verdict": comparison.verdict.outcome,
        "guardrails": guardrails,
        "guardrails_held": msgspec.to_builtins(guardrails_held(list(chain(*guardrails.values())))),
        "is_split_wrong": primary.found.split.is_wrong,
        "split_pvalue": primary.found.split.p_value,
        "discovery": None
        if discovery is None
        else {"is_made": discovery.is_made, "words": discovery.words},
    }


def interval_words(row: Mapping[str, Any]) -> tuple[str, str]:
    """The lift of a row, and its interval at any time."""
    lift = row["lift"]
    write = formatting.lift if row["scale"] == Scale.RELATIVE else formatting.signed
    if lift["value"] is None:
        return "", ""
    interval = lift["anytime"]
    if interval is None:
        return write(lift["value"]), "not yet"
    return write(lift["value"]), f"{write(interval['low'])} to {write(interval['high'])}"
