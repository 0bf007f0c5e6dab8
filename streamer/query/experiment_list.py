"""All experiments together: their readouts, discoveries among them, and the list by what needs a
decision."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from streamer.encoding.limbs import Columns
from streamer.errors import UsageError
from streamer.query.experiment_metrics import plan_of, rule_of
from streamer.query.experiments import JudgedExperiment, StoredExperiment
from streamer.query.lift_scale import LiftBar, LiftScale, ScaleTick
from streamer.query.readout import (
    Advice,
    DayProgress,
    GuardrailsHeld,
    advice_of,
    guardrails_held,
    progress,
)
from streamer.query.shown_lift import ShownLift, shown_lift
from streamer.query.sparing import Sparing
from streamer.settings.model import Settings
from streamer.settings.names import nearest
from streamer.stats.experiments.discoveries import Candidate, Discovery, candidate, discoveries
from streamer.stats.experiments.readout import Comparison
from streamer.stats.experiments.recommendation import DISTRUST, Action
from streamer.stats.experiments.srm import Split
from streamer.stats.experiments.verdict import Outcome

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
    readout: JudgedExperiment
    discoveries: Mapping[str, Discovery]

    @property
    def needs(self) -> str:
        """What it needs, in a word."""
        found = self.readout.recommendation
        if found is None:
            return NOT_STARTED
        return next(word for word, actions in NEEDS.items() if found.action in actions)

    @property
    def comparison(self) -> Comparison:
        """The treatment that the recommendation is about, or else the one that is best so far."""
        found = self.readout
        return next(c for c in found.primary.found.comparisons if c.arm == found.focus)


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
    readout: JudgedExperiment


class Readouts:
    """The readouts of all experiments. They are made again where sums changed, sparingly."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """``clock``: seconds; without one they are made whenever sums changed."""
        self._sparing = Sparing(clock)
        self._kept: dict[str, _Kept] = {}
        self._found: dict[str, JudgedExperiment] = {}
        self.discoveries: Sequence[Discovery] = ()
        """Of all treatments, where a false discovery rate is set."""

    def of(
        self, settings: Settings, stored: Mapping[str, StoredExperiment]
    ) -> Mapping[str, JudgedExperiment]:
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

    def _read(self, name: str, stored: StoredExperiment) -> JudgedExperiment:
        parts = stored.parts
        minute = stored.stream_ms // 60_000
        of = (stored.trial.shape, stored.experiment, minute, *map(id, parts))
        kept = self._kept.get(name)
        if kept is None or kept.of != of:
            kept = self._kept[name] = _Kept(of, parts, stored.read())
        return kept.readout


def read_one(
    settings: Settings, stored: Mapping[str, StoredExperiment], name: str, readouts: Readouts
) -> JudgedExperiment:
    """The readout of one experiment: by itself, or as one of all, where a false discovery rate is
    set."""
    if settings.experiments_defaults.false_discovery_rate is None:
        return stored[name].read()
    return readouts.of(settings, stored)[name]


def unknown_experiment(name: str, stored: Mapping[str, StoredExperiment]) -> str:
    """That there is none of this name, and which there are, or how to declare one."""
    near, known = nearest(name, stored), ", ".join(stored)
    none = (
        "none, and no event names one: [[experiments]] takes name, control, split, start, and arm"
    )
    hint = f"; did you mean {near!r}?" if near else f"; there are {known or none}"
    return f"no experiment {name!r}{hint}"


def discovered(
    stored: Mapping[str, StoredExperiment], found: Mapping[str, JudgedExperiment], rate: float
) -> list[Discovery]:
    """Every treatment of every experiment that has begun, among all of them."""
    return discoveries(list(_candidates(stored, found)), rate)


def _candidates(
    stored: Mapping[str, StoredExperiment], found: Mapping[str, JudgedExperiment]
) -> Iterator[Candidate]:
    for name, readout in found.items():
        advice, experiment = readout.recommendation, readout.experiment
        if advice is None or experiment.holdout:
            continue
        plan = plan_of(experiment, is_over=stored[name].is_over)
        primary = readout.primary
        rule = rule_of(experiment, experiment.primary, stored[name].ratios[primary.name])
        for comparison in primary.found.comparisons:
            may_ship = advice.action is Action.SHIP and advice.arm == comparison.arm
            yield candidate(name, plan, rule, comparison, is_eligible=may_ship)


def _with_discoveries(
    found: Mapping[str, JudgedExperiment], made: Sequence[Discovery]
) -> Iterator[tuple[str, JudgedExperiment]]:
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
        held = dataclasses.replace(
            advice, action=Action.KEEP_RUNNING, reason=reason, days=None, since=None
        )
        yield name, dataclasses.replace(readout, recommendation=held)


# Documents -------------------------------------------------------------------------------------


def only(every: Sequence[ListedExperiment], word: str | None) -> list[ListedExperiment]:
    """Those that need this; UsageError where it is no word of ``WORDS``."""
    if word is not None and word not in WORDS:
        raise UsageError(f"only {word!r}: one of {', '.join(WORDS)}")
    return [each for each in every if word in (None, each.needs)]


class ListedReadout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of the list. Before the first day it has what is declared alone, and says what it waits
    for (``waiting``). ``bar``: the lift on the scale of all rows."""

    name: str
    title: str
    owner: str
    key: str
    is_found: bool
    dimension: str | None
    arm: Sequence[str]
    control: str
    arms: Sequence[str]
    start: datetime.date
    end: datetime.date | None
    explore: Sequence[str]
    needs: str
    waiting: str = ""
    advice: Advice | None = None
    users: int | None = None
    users_in_several_arms_ratio: float | None = None
    days: DayProgress | None = None
    metric: str | None = None
    metric_title: str | None = None
    treatment: str | None = None
    lift: ShownLift | None = None
    bar: LiftBar | None = None
    verdict: Outcome | None = None
    guardrails: GuardrailsHeld | None = None
    split: Split | None = None
    discovery: ListedDiscovery | None = None


class ListedDiscovery(msgspec.Struct, frozen=True):
    """Whether a treatment is a discovery among all, and that in words."""

    is_made: bool
    words: str


class ReadoutList(msgspec.Struct, frozen=True):
    """All experiments, what needs a decision first. ``needs``: how many of each; ``scale``: marks
    of the scale of all lifts."""

    false_discovery_rate: float | None
    needs: Mapping[str, int]
    scale: Sequence[ScaleTick]
    experiments: Sequence[ListedReadout]


def list_of(settings: Settings, every: Sequence[ListedExperiment]) -> ReadoutList:
    """The list as every face shows it."""
    rows = [_row(settings, each) for each in every]
    scale = LiftScale.of([row.lift for row in rows if row.lift is not None])
    return ReadoutList(
        settings.experiments_defaults.false_discovery_rate,
        {word: sum(each.needs == word for each in every) for word in WORDS},
        scale.ticks(),
        [replace(row, bar=None if row.lift is None else scale.bar(row.lift)) for row in rows],
    )


def _row(settings: Settings, each: ListedExperiment) -> ListedReadout:
    experiment, found = each.stored.experiment, each.readout
    row = ListedReadout(
        name=experiment.name,
        title=experiment.title or experiment.name,
        owner=experiment.owner,
        key=experiment.called,
        is_found=each.stored.is_found,
        dimension=experiment.dimension or None,
        arm=settings.arm_paths_of(experiment),
        control=experiment.control,
        arms=experiment.arms,
        start=experiment.start,
        end=experiment.end,
        explore=experiment.explore,
        needs=each.needs,
    )
    if found.recommendation is None:
        starts = f"Starts on {experiment.start}"
        return replace(row, waiting=starts if each.stored.stream_ms else "Waits for a first event")
    comparison, primary = each.comparison, found.primary
    discovery = each.discoveries.get(comparison.arm)
    return replace(
        row,
        advice=advice_of(found.recommendation),
        users=sum(found.users.values()),
        users_in_several_arms_ratio=found.several_arms_ratio,
        days=progress(found),
        metric=primary.name,
        metric_title=each.stored.ratios[primary.name].title,
        treatment=comparison.arm,
        lift=shown_lift(primary.found, comparison, primary.form),
        verdict=comparison.verdict.outcome,
        guardrails=guardrails_held(found),
        split=primary.found.split,
        discovery=discovery and ListedDiscovery(discovery.is_made, discovery.words),
    )
