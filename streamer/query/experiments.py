"""Experiments as readers see them: sums of all partitions, compared, as of a day or a range.

Which decision on an experiment counts: the first one, at the end of an earlier day or now.

Nothing is stored of it: each look is computed again from the sums up to its day, which late events
may correct. What has not changed is not computed twice.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import blake2b

import msgspec
import numpy as np

from streamer.encoding.limbs import Columns
from streamer.errors import UsageError
from streamer.formatting import counted, minute, share, two_digits
from streamer.metrics.compared_metrics import (
    ComparedRatio,
    ExperimentMeasures,
    found_experiment,
)
from streamer.query.exactness import rows_left_early
from streamer.query.experiment_metrics import (
    JudgedMetric,
    MidpointSums,
    compared,
    decision_of,
    without,
)
from streamer.query.shown_lift import shown_lift
from streamer.query.unit_sums import UnitReading, UnitReadings
from streamer.settings import limits
from streamer.settings.durations import DAY_MS, date_of, day_of, short
from streamer.settings.experiments import Experiment
from streamer.settings.model import Settings
from streamer.state.acted import Acted, ToldDecision
from streamer.state.counters import added
from streamer.state.experiment_sums import ExperimentSlot
from streamer.state.snapshot import View
from streamer.stats.experiments.days import five_to_two, is_odd, oddness, unseen, week_left
from streamer.stats.experiments.forecast import Growth
from streamer.stats.experiments.readout import Comparison
from streamer.stats.experiments.recommendation import (
    DECISIONS,
    DISTRUST,
    Action,
    Recommendation,
    Reweighing,
    first_decision,
    recommend,
)
from streamer.stats.experiments.srm import ALPHA, History, Split, leaning, split
from streamer.stats.experiments.trials import (
    ACTIVE,
    CompiledExperiment,
    CumulatedSums,
    DayWeights,
    Unit,
    cumulated,
    median_age,
    of_arms,
    users_by_day,
)


@dataclass(frozen=True, slots=True)
class Outside:
    """Outcomes (feedback, conversions, viewings) that count towards no arm: before the first
    exposure of their user (of attributed ones: without the arm of their user), and of users without
    one. Those of users in several arms are not among them."""

    before_exposure: int
    unexposed: int


@dataclass(frozen=True, slots=True)
class Data:
    """What there is of an experiment: from the first exposure of a user (or the day of it, where
    the time is not known) to stream time, and ``days``, whole days with users."""

    from_ms: int
    to_ms: int
    days: int

    @property
    def words(self) -> str:
        """How much it is.

        >>> Data(0, 900_000, 0).words, Data(0, 3 * DAY_MS, 3).words
        ('15 minutes of data', '3 days of data')
        """
        minutes = max(0, self.to_ms - self.from_ms) // 60_000
        for unit, size in (("day", 1440), ("hour", 60)):
            if minutes >= 2 * size:
                return f"{counted(minutes // size, unit)} of data"
        return f"{counted(minutes, 'minute')} of data"


@dataclass(frozen=True, slots=True)
class OddDay:
    """A day without which the lift of a treatment is another one. ``amounts``: by arm what an
    active user did on it, in words."""

    day: datetime.date
    whole: Comparison
    without: Comparison
    amounts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class JudgedExperiment:
    """An experiment from ``first`` to ``last``, both days included; ``last`` is None before the
    first day has begun. ``leaning``: in which arm too many of those in several began, in words.
    ``data``: what there is of these days. ``counted_since_ms``: where
    something is counted only since then. ``recommendation`` is None before the first day, and of
    ranges that begin later."""

    experiment: Experiment
    first: datetime.date
    last: datetime.date | None
    users: Mapping[str, int]
    users_in_several_arms: int
    leaning: str
    outside: Outside | None
    data: Data | None
    user_sample_ratio: float
    counted_since_ms: int | None
    metrics: Sequence[JudgedMetric]
    recommendation: Recommendation | None
    left_early: int = 0

    @property
    def primary(self) -> JudgedMetric:
        """The metric that decides."""
        name = self.experiment.primary.name
        return next(metric for metric in self.metrics if metric.name == name)

    @property
    def focus(self) -> str:
        """The treatment to look at: the one that is advised, or else the best so far."""
        advice, primary = self.recommendation, self.primary
        sign = 1 if primary.direction == "higher" else -1
        lifts = {c.arm: sign * (c.absolute.value or 0.0) for c in primary.found.comparisons}
        advised = None if advice is None else advice.arm
        return advised if advised in lifts else max(lifts, key=lambda arm: lifts[arm])

    @property
    def several_arms_ratio(self) -> float:
        """Share of the users exposed to an arm who were exposed to another one, too."""
        exposed = self.users_in_several_arms + sum(self.users.values())
        return self.users_in_several_arms / exposed if exposed else 0.0


def unit_words(experiment: Experiment) -> str:
    """What is put into arms, where that is not the user; else nothing.

    >>> unit_words(Experiment(name="x", unit="store", control="A", split={}, start=date_of(0)))
    'a value of store'
    """
    of = experiment.switchback
    if of is not None:
        where = f" of a value of {of.by}" if of.by else ""
        return f"a slot of {short(of.slot_ms)}{where}"
    return "" if experiment.unit_field is None else f"a value of {experiment.unit}"


def require_user_unit(stored: StoredExperiment, asked: str) -> None:
    """UsageError for what is made of rows of users (``asked``), where these are not the unit."""
    name = f"experiment {stored.experiment.name!r}"
    why = f"{name} has several splits, which days tell apart" if stored.periods else ""
    if stored.trial.unit is not None:
        why = f"the unit of {name} is {unit_words(stored.experiment)}"
    if why:
        raise UsageError(f"{asked}: it is made of rows of users, and {why}")


def _of_holdout(found: JudgedExperiment) -> str:
    """What everything shipped since its start has brought, by the primary metric."""
    experiment, metric = found.experiment, found.primary
    lift = shown_lift(metric.found, metric.found.comparisons[0], metric.form)
    return (
        f"{metric.name} of users who get everything shipped since {experiment.start}, compared "
        f"with the held-out users ({experiment.control}): {lift.words}."
    )


def sampled(ratio: float) -> str:
    """That only a share of the users is counted."""
    return f"All figures come from a sample of {share(ratio)} of the users"


def began(since_ms: int) -> str:
    """Since when something is counted."""
    return f"Counting began at {minute(since_ms)} UTC"


@dataclass(frozen=True)
class StoredExperiment:
    """What is known of one experiment: its settings, and its sums in every partition."""

    experiment: Experiment
    trial: CompiledExperiment
    ratios: Mapping[str, ComparedRatio]
    parts: Sequence[Columns]
    stream_ms: int
    sample_bits: int
    since_ms: int
    exposed_since_ms: int | None = None
    is_found: bool = False
    """Whether events name it and settings do not."""
    acted: Sequence[ToldDecision] = ()
    """What was acted on, the oldest first."""
    left_early: int = 0
    """Impressions and feedback that left before their time, as a bound of memory was reached."""
    periods: Sequence[tuple[Mapping[str, float], CompiledExperiment, Sequence[Columns]]] = ()
    """Of a ramp each period: its planned shares, how it is counted, and its sums."""

    @property
    def last_day(self) -> int | None:
        """The last day that has begun, since 1970-01-01; None before the first."""
        day = min(self.stream_ms // DAY_MS, self.trial.days.stop - 1)
        return day if day >= self.trial.days.start else None

    def read_whole(self) -> StoredExperiment:
        """The same after the end of its files: an experiment of one day has that day whole."""
        end_ms = self.trial.days.stop * DAY_MS
        is_whole = len(self.trial.days) == 1 and self.stream_ms >= end_ms - DAY_MS
        return replace(self, stream_ms=max(self.stream_ms, end_ms)) if is_whole else self

    @property
    def users(self) -> int:
        """Users of all arms so far."""
        last = self.last_day
        return 0 if last is None else users_of(self.trial, self.parts, last)

    @property
    def user_sample_ratio(self) -> float:
        """Share of the users who are in the sums."""
        return 2.0**-self.sample_bits

    @property
    def so_far(self) -> range:
        """The days that have begun."""
        last = self.last_day
        return range(self.trial.days.start, self.trial.days.start if last is None else last + 1)

    @cached_property
    def excluded(self) -> DayWeights:
        """The days that do not count."""
        return {day_of(date): 0 for date in self.experiment.exclude}

    @cached_property
    def days_with_users(self) -> list[int]:
        """The days that count on which users of an arm had an impression or an outcome."""
        found: set[int] = set()
        for part in self.parts:
            place, stat = np.divmod(part["key"], self.trial.stats)
            is_active = (stat == ACTIVE) & (place >= len(self.trial.days))
            found.update(np.unique(place[is_active] % len(self.trial.days)).tolist())
        days = (self.trial.days.start + day for day in sorted(found))
        return [day for day in days if day not in self.excluded]

    def whole_days(self, last: int) -> list[int]:
        """Those of them up to a day that are over."""
        over = min(last, self.stream_ms // DAY_MS - 1)
        return [day for day in self.days_with_users if day <= over]

    @property
    def data(self) -> Data | None:
        """What there is up to now; None without a user."""
        if not self.days_with_users:
            return None
        from_ms = self.days_with_users[0] * DAY_MS
        if self.exposed_since_ms is not None:
            from_ms = max(from_ms, self.exposed_since_ms)
        to_ms = min(self.stream_ms, self.trial.days.stop * DAY_MS)
        return Data(from_ms, to_ms, len(self.whole_days(self.days_with_users[-1])))

    @property
    def starts_later(self) -> str:
        """That no day has begun yet, in words; empty where one has."""
        if self.so_far:
            return ""
        if not self.stream_ms:
            return f"experiment {self.experiment.name!r} waits for a first event: none came yet"
        return f"experiment {self.experiment.name!r} starts only on {self.experiment.start}"

    @property
    def is_partial(self) -> bool:
        """Whether something is counted only since some time in the experiment."""
        return self.since_ms > self.trial.first_day * DAY_MS

    @property
    def counted_since_ms(self) -> int | None:
        """Since when; None where everything is counted from the start."""
        return self.since_ms if self.is_partial else None

    def read(self, day: int | None = None) -> JudgedExperiment:
        """The readout as of the end of a day, or as of now with the decision that counts."""
        last = self.last_day if day is None else day
        found = self.of_parts(self.parts, self.trial.days.start, last)
        if day is not None or last is None or found.recommendation is None:
            return found
        today = found.recommendation
        if today.action in (*DECISIONS, Action.WAIT):
            today = self._recommended(found, last, self._readings_now)
        return replace(found, recommendation=first_decision(self.looks(), today))

    def of_parts(self, parts: Sequence[Columns], first: int, last: int | None) -> JudgedExperiment:
        """The readout of sums over the days from ``first`` to ``last`` (None: of none)."""
        past = None if last is None else self._past(parts, first, last)
        sums = self._sums(parts, first - 1 if last is None else last, self.excluded)
        is_over = last is not None and self._is_over(last)
        rules = self.experiment if last is None else self._rules(last)
        known = rules, self.trial, self.ratios, sums, past
        metrics = compared(*known, self._split(parts, sums, first, last), is_over=is_over)
        is_whole = first == self.trial.days.start
        if not is_whole:  # of a range, users are as old as its first day
            metrics = [replace(metric, ages={}) for metric in metrics]
        none, *arms = sums.counts
        found = JudgedExperiment(
            experiment=self.experiment,
            first=date_of(first),
            last=None if last is None else date_of(last),
            users={arm: s["users"] for arm, s in zip(self.trial.arms, arms, strict=True)},
            users_in_several_arms=none["mixed"],
            leaning=leaning(
                {arm: s["mixed"] for arm, s in zip(self.trial.arms, arms, strict=True)},
                self.experiment.shares,
            ),
            outside=Outside(none["early"], none["unexposed"]),
            data=self.data,
            user_sample_ratio=self.user_sample_ratio,
            counted_since_ms=self.counted_since_ms,
            metrics=metrics,
            recommendation=None,
            left_early=self.left_early,
        )
        if last is None or not is_whole:
            return found
        return replace(found, recommendation=self._recommended(found, last))

    def _sums(self, parts: Sequence[Columns], last: int, weights: DayWeights) -> CumulatedSums:
        """Up to a day, of a ramp by period, too."""
        found = cumulated(self.trial, parts, last, weights)
        if not self.periods:
            return found
        begun = [(s, t, p) for s, t, p in self.periods if t.days.start <= last]
        by_period = [
            (shares, cumulated(trial, its, min(last, trial.days.stop - 1), weights))
            for shares, trial, its in begun
        ]
        return replace(found, periods=by_period)

    def _split(
        self, parts: Sequence[Columns], sums: CumulatedSums, first: int, last: int | None
    ) -> Split:
        """Of a ramp that of the period in which it is the least likely."""
        is_over = last is not None and self._is_over(last)
        splits = []
        for shares, trial, its in self.periods or [(self.experiment.shares, self.trial, parts)]:
            end = min(first - 1 if last is None else last, trial.days.stop - 1)
            days = [d for d in self.days_with_users if max(first, trial.days.start) <= d < end]
            history: History = []
            if self.experiment.switchback is None:  # slots have their arms by schedule
                found = users_by_day(trial, its, days)
                history = [(date_of(d), each) for d, each in zip(days, found, strict=True)]
            counts = of_arms(trial, its, end)[1:] if self.periods else sums.counts[1:]
            users = {a: max(0, each["users"]) for a, each in zip(trial.arms, counts, strict=True)}
            planned = {arm: shares[arm] / sum(shares.values()) for arm in trial.arms}
            alpha = ALPHA / max(1, len(self.periods))
            splits.append(split(users, planned, history, is_over=is_over, alpha=alpha))
        return min(splits, key=lambda each: (each.p_value, each.p_value_fixed))

    def _readings(self, last: int) -> list[Reweighing]:
        """Up to a day: without each day in turn, with weekdays and weekends as 5 : 2, and with the
        days that are excluded."""
        days = [day for day in self.days_with_users if day <= last]
        rules, is_over = self._rules(last), self._is_over(last)

        def reading(
            words: str, weights: DayWeights, left_out: datetime.date | None = None
        ) -> Reweighing:
            sums = self._sums(self.parts, last, {**self.excluded, **weights})
            metrics = without(rules, self.trial, self.ratios, sums, is_over=is_over)
            return Reweighing(words, metrics, left_out)

        readings = [reading(f"without {date_of(day)}", {day: 0}, date_of(day)) for day in days]
        if self.experiment.whole_weeks and (weights := five_to_two(days)):
            readings.append(reading("with weekdays and weekends as 5 : 2", weights))
        if self.excluded:
            back = dict.fromkeys(self.excluded, 1)
            readings.append(reading("with the days that are excluded", back))
        return readings

    @cached_property
    def _readings_now(self) -> list[Reweighing]:
        """Those up to the last day, which both the advice and the odd days are from."""
        return [] if self.last_day is None else self._readings(self.last_day)

    def _rules(self, last: int) -> Experiment:
        """The settings by which a day is judged: the one look at the end needs the planned
        users, else whoever ends early chooses the look."""
        experiment, planned = self.experiment, self.experiment.planned_users or 0
        if self._is_over(last) and planned > users_of(self.trial, self.parts, last):
            return msgspec.structs.replace(experiment, decide="any_time")
        return experiment

    def odd_days(self, found: JudgedExperiment) -> list[OddDay]:
        """For each treatment the day without which the lift of the primary metric is another one,
        of several the most odd."""
        primary = found.primary
        if found.recommendation is None:
            return []
        readings = [each for each in self._readings_now if primary.name in each.metrics]
        odd = []
        for number, whole in enumerate(primary.found.comparisons):
            by_day = {
                each.left_out: each.metrics[primary.name].comparisons[number]
                for each in readings
                if each.left_out is not None
            }
            day = max(
                by_day, key=lambda d: oddness(whole.absolute, by_day[d].absolute), default=None
            )
            if day and is_odd(whole.absolute, by_day[day].absolute, len(by_day)):
                odd.append(OddDay(day, whole, by_day[day], self._amounts(day, primary.name)))
        return odd

    def _amounts(self, date: datetime.date, name: str) -> dict[str, str]:
        """By arm what an active user did on a day, and on the other days."""
        last, ratio = self.last_day, self.ratios[name]
        assert last is not None
        whole, now, then = (
            cumulated(self.trial, self.parts, day) for day in (last, day_of(date), day_of(date) - 1)
        )
        said = {}
        for number, arm in enumerate(self.trial.arms):
            by_part: list[str] = []
            for part, noun, unit in (("y", ratio.counted, 1), ("x", ratio.noun, ratio.unit)):
                if part == "y" and ratio.below is None:
                    continue
                of = [each.measures[name].arms[number].get(part, 0) for each in (whole, now, then)]
                users = [each.counts[number + 1]["active"] for each in (whole, now, then)]
                on = (of[1] - of[2]) / max(1, users[1] - users[2]) / unit
                off = (of[0] - of[1] + of[2]) / max(1, users[0] - users[1] + users[2]) / unit
                by_part.append(
                    f"{two_digits(float(on))} {noun} ({two_digits(float(off))} on other days)"
                )
            said[arm] = " and ".join(by_part)
        return said

    def _delays(self, found: JudgedExperiment, last: int) -> dict[str, int]:
        """By metric, days until its outcomes have had time to come: its window, or, of the primary
        one per user, twice the time in which half of the control's come."""
        first = next(iter(self.days_with_users), last)
        takes = {m.name: m.within_days or 0 for m in self.experiment.metrics if not m.mature}
        primary = found.primary
        if not takes.get(primary.name) and self.ratios[primary.name].below is None:
            controls = {age: its.arms[0] for age, its in primary.ages.items()}
            amounts = {age: (arm.value or 0.0) * arm.users for age, arm in controls.items()}
            takes[primary.name] = 2 * median_age(amounts)
        return {name: days - (last + 1 - first) for name, days in takes.items()}

    def _recommended(
        self, found: JudgedExperiment, last: int, readings: Sequence[Reweighing] = ()
    ) -> Recommendation:
        """What counts from the start holds at any look, that of a range does not."""
        is_over = self._is_over(last)
        over = self.whole_days(last)
        is_weekly = self.experiment.whole_weeks
        left = week_left(self.days_with_users[0], last, self.stream_ms) if over else None
        decision = replace(
            decision_of(self._rules(last), self.ratios, found.metrics, is_over=is_over),
            days=len(over),
            several_arms=found.several_arms_ratio,
            leaning=found.leaning,
            week_left=left if is_weekly else None,
            unseen=unseen(over) if is_weekly else "",
            readings=readings,
            delay_left=self._delays(found, last),
        )
        advice = recommend(decision)
        if not self.experiment.holdout or advice.action in DISTRUST:
            return advice
        return Recommendation(Action.MEASURE, None, _of_holdout(found))

    @property
    def is_over(self) -> bool:
        """Whether the last day is over."""
        return self.last_day is not None and self._is_over(self.last_day)

    def _is_over(self, last: int) -> bool:
        """Whether a look at the end of a day is one after the last day."""
        return last == self.last_day and self.stream_ms >= self.trial.days.stop * DAY_MS

    def looks(self) -> Iterator[tuple[datetime.date, Recommendation]]:
        """What was said at the end of each earlier day with users."""
        earlier = [day for day in self.days_with_users if day != self.last_day]
        is_decided = False
        for day, key in keys_by_day(self.trial, self.parts, repr(self.experiment), earlier):
            found = LOOKS.at(key, partial(self._look, day))
            if found.action in DECISIONS and not is_decided:
                found = LOOKS.at(key + b" ", partial(self._look, day, is_final=True))
                is_decided = found.action in DECISIONS
            yield date_of(day), found

    def _look(self, day: int, *, is_final: bool = False) -> Recommendation:
        """What a day says; ``is_final``: where it would be the decision."""
        found = self.read(day)
        assert found.recommendation is not None
        if is_final:
            return self._recommended(found, day, self._readings(day))
        return found.recommendation

    def _past(self, parts: Sequence[Columns], first: int, last: int) -> MidpointSums | None:
        """At half time; None before two whole days, or where nobody comes any more."""
        first = max(first, next(iter(self.days_with_users), first))
        days = self.stream_ms / DAY_MS - first
        half = int(days) // 2
        if last != self.last_day or not half or self.stream_ms >= self.trial.days.stop * DAY_MS:
            return None
        then, now = users_of(self.trial, parts, first + half - 1), users_of(self.trial, parts, last)
        if not then:
            return None
        sums = self._sums(parts, first + half - 1, self.excluded)
        return MidpointSums(Growth(half, then, days, now), sums)


def users_of(trial: CompiledExperiment, parts: Sequence[Columns], day: int) -> int:
    """Users of all arms up to the end of a day."""
    return sum(counts["users"] for counts in of_arms(trial, parts, day)[1:])


def stored_experiments(
    settings: Settings,
    measures: ExperimentMeasures,
    views: Sequence[View],
    units: UnitReadings | None = None,
    acted: Acted | None = None,
) -> dict[str, StoredExperiment]:
    """Name → what is known of it, of all experiments: those of the settings, then those that events
    name besides. Sums that were made under other settings are not read. ``units``: sums over units
    that are not users, as the same reader had them before; ``acted``: on any of them."""
    acted = acted or Acted()
    stream_ms = max((view.header.stream_ms for view in views), default=0)
    counters = [view.header.counters for view in views]
    bits, left_early = added("day_sample_bits", counters), rows_left_early(counters)
    of_units = (units or UnitReadings()).of(settings, measures, views)
    stored = {}
    for experiment, trial in zip(settings.experiments, measures.trials, strict=True):
        since = [
            view.header.counted_since_ms.get(name, view.header.stream_ms)
            for view in views
            for name in measures.needs(trial)
        ]
        known = _of_users(trial, views, bits) if trial.unit is None else _of_unit(trial, of_units)
        parts, its_bits, exposed_ms = known
        stored[experiment.name] = StoredExperiment(
            *(experiment, trial, measures.ratios, parts, stream_ms, its_bits),
            *(max(since, default=0), exposed_ms),
            acted=acted.of_experiment(experiment.name, experiment.start),
            left_early=left_early,
            periods=[
                (period.shares, its, _of_users(its, views, bits)[0])
                for period, its in zip(
                    experiment.periods, measures.periods.get(trial.name, ()), strict=False
                )
            ],
        )
    for experiment in found_experiments(settings, views):
        trial = measures.compiled(experiment)
        here = [
            (view, found)
            for view in views
            for found in view.header.found_experiments
            if found.key == experiment.key
        ]
        slots = [(view, ExperimentSlot(measures.slots[one.slot], one.arms)) for view, one in here]
        sums = (view.experiments.of(trial, slot) for view, slot in slots)
        parts = [part for part in sums if part is not None]
        exposed = [one.first_ms for _, one in here if one.first_ms is not None]
        stored[experiment.name] = StoredExperiment(
            *(experiment, trial, measures.ratios, parts, stream_ms, bits, 0),
            min(exposed, default=None),
            is_found=True,
            acted=acted.of_experiment(experiment.name, experiment.start),
            left_early=left_early,
        )
    return stored


_Known = tuple[Sequence[Columns], int, int | None]
"""Sums of an experiment, bits of the sample, and when it exposed a user first."""


def _of_users(trial: CompiledExperiment, views: Sequence[View], bits: int) -> _Known:
    name = trial.exposure.name
    exposed = [v.header.exposed_since_ms.get(name) for v in views]
    parts = [part for v in views if (part := v.experiments.of(trial)) is not None]
    return parts, bits, min((ms for ms in exposed if ms is not None), default=None)


def _of_unit(trial: CompiledExperiment, of_units: Mapping[Unit, UnitReading]) -> _Known:
    reading = of_units.get(trial.unit) if trial.unit is not None else None
    if reading is None:
        return [], 0, None
    return reading.parts(trial), reading.sample_bits, reading.exposed_since_ms.get(trial.exposure)


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.:-]+")


def found_experiments(settings: Settings, views: Sequence[View]) -> list[Experiment]:
    """The experiments that events name and settings do not, of two arms or more, by name. One whose
    key is no name is called like it, other characters aside."""
    arms: dict[str, dict[str, int]] = {}
    first_days: dict[str, int] = {}
    for view in views:
        for found in view.header.found_experiments:
            named_by = arms.setdefault(found.key, {})
            for arm, by in zip(found.arms, found.named_by[1:], strict=True):
                named_by[arm] = min(by, named_by.get(arm, by))
            first = first_days.get(found.key, found.first_day)
            first_days[found.key] = min(first, found.first_day)
    names = {e.name for e in settings.experiments}
    experiments = []
    for key in sorted(arms):
        name = _NOT_IN_NAMES.sub("_", key)[:64]
        if name in names:
            name = f"{name[:55]}-{blake2b(key.encode(), digest_size=4).hexdigest()}"
        named_by = arms[key]
        of_key = sorted(sorted(named_by, key=named_by.__getitem__)[: limits.MAX_ARMS])
        if len(of_key) > 1:
            names.add(name)
            experiments.append(found_experiment(settings, key, of_key, first_days[key], name))
    return sorted(experiments, key=lambda each: each.name)


MAX_LOOKS = 8192
"""Looks that are kept, of all experiments."""


class Looks:
    """Recommendations at the end of earlier days, by what they were computed from."""

    def __init__(self) -> None:
        self._found: dict[bytes, Recommendation] = {}

    def at(self, key: bytes, compute: Callable[[], Recommendation]) -> Recommendation:
        """The recommendation from what ``key`` is of, which is computed where it is not known."""
        known = self._found.get(key)
        if known is not None:
            return known
        if len(self._found) >= MAX_LOOKS:
            self._found = {}
        return self._found.setdefault(key, compute())


LOOKS = Looks()


def keys_by_day(
    trial: CompiledExperiment, parts: Sequence[Columns], settings: str, days: Sequence[int]
) -> Iterator[tuple[int, bytes]]:
    """For each of ``days``, ascending, a digest of the settings and of all sums up to it."""
    chain = blake2b(f"{trial.shape} {settings}".encode(), digest_size=16)
    of_parts = []
    for found in parts:
        day_of = found["key"] // trial.stats % len(trial.days) + trial.days.start
        order = np.argsort(day_of, kind="stable")
        of_parts.append((day_of[order], [column[order] for column in found.values()]))
    before = trial.days.start
    for day in days:
        for number, (sorted_days, columns) in enumerate(of_parts):
            first, stop = (int(np.searchsorted(sorted_days, each)) for each in (before, day + 1))
            chain.update(f"{number} {day} {stop - first}".encode())
            for column in columns:
                chain.update(np.ascontiguousarray(column[first:stop]).tobytes())
        before = day + 1
        yield day, chain.copy().digest()
