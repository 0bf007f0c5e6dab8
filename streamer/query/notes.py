"""What is said of an experiment beside its numbers: every face shows all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import hypot

import msgspec

from streamer.formatting import change, counted, minute, percent
from streamer.query.experiment_metrics import JudgedMetric
from streamer.query.experiments import JudgedExperiment, OddDay, began, sampled, unit_words
from streamer.query.shown_lift import shown_lift
from streamer.settings.schedules import tied_to_hours
from streamer.state.acted import Told, ToldDecision
from streamer.stats.experiments.days import WEEK
from streamer.stats.experiments.readout import MetricComparisons
from streamer.stats.experiments.srm import Split

HEAVY = 0.1
"""Share of a denominator from which on it is said that a few users have it."""
MANY_IN_SEVERAL_ARMS = 0.01
"""Share of users seen in several arms from which on that is a warning."""


APART = 3.0
"""Standard errors between the lifts of a plain and an attributed rate from which on it is said."""


class Severity(StrEnum):
    """How a note is meant: all is well, to be known, to be looked into before anything is believed,
    or nothing may be believed."""

    GOOD = "good"
    INFO = "info"
    WARNING = "warning"
    BAD = "bad"


class Note(msgspec.Struct, frozen=True):
    """A sentence or two. ``kind``: what it is about, in words; ``metric``: the name of the metric
    that it is about, else empty."""

    kind: str
    text: str
    severity: Severity = Severity.INFO
    metric: str = ""

    @property
    def line(self) -> str:
        """By itself."""
        of = "Warning" if self.severity is Severity.WARNING else self.metric
        return f"{of}: {self.text}" if of else self.text


def notes_of(found: JudgedExperiment, odd: Sequence[OddDay] = ()) -> Iterator[Note]:
    """All of an experiment, from its first day on. ``odd``: days of it."""
    if found.last is None:
        return
    yield _data(found)
    yield from _unit(found)
    yield from _weeks(found)
    yield from _plan(found)
    yield _split(found.metrics[0].found.split)
    yield from _slots(found)
    yield from _left_early(found)
    yield from _several_arms(found)
    yield from _outside(found)
    yield from (_odd(found, each) for each in odd)
    for metric in found.metrics:
        if metric.definition:
            yield Note("definition", f"{metric.definition}.", metric=metric.name)
        yield from _window(found, metric)
        yield from _disagreement(found, metric)
        yield from _cap(metric)
        yield from _heaviest(metric)
        yield from _groups(metric, metric.ages, "days since a user's exposure")
        yield from _groups(metric, metric.periods, "periods of the split")
    if found.user_sample_ratio < 1:
        yield Note("sample", f"{sampled(found.user_sample_ratio)}.")
    if found.counted_since_ms is not None:
        since = began(found.counted_since_ms)
        yield Note("start of counting", f"{since}, after the start of the experiment.")


def _split(split: Split) -> Note:
    severity = Severity.GOOD if any(split.users.values()) else Severity.INFO
    if split.is_wrong or split.is_unusual:
        severity = Severity.BAD if split.is_wrong else Severity.WARNING
    return Note("split", split.sentence, severity)


def _slots(found: JudgedExperiment) -> Iterator[Note]:
    of = found.experiment.switchback
    tied = None if of is None else tied_to_hours(of.by_value, of.slot_ms)
    if tied is not None:
        yield Note("slots", tied.sentence, Severity.WARNING)


def _left_early(found: JudgedExperiment) -> Iterator[Note]:
    if found.left_early:
        yield Note(
            "joins",
            f"{found.left_early:,} impressions and feedback left memory early since the state "
            "began: metrics of joined feedback are not exact. Raise limits.worker_memory_mb, or "
            "the bound that streamer_inexact names.",
            Severity.WARNING,
        )


def _data(found: JudgedExperiment) -> Note:
    if found.data is None:
        return Note("data", "No user was exposed yet.")
    first = minute(found.data.from_ms)
    declared = found.experiment.start
    is_late = first[:10] != declared.isoformat()
    late = f"; its declared start is {declared}" if is_late else ""
    return Note("data", f"{found.data.words}, since {first} UTC{late}.")


def _unit(found: JudgedExperiment) -> Iterator[Note]:
    if unit := unit_words(found.experiment):
        words = f"The unit is {unit}: 'user' means this here, also in names of metrics."
        yield Note("unit", words)


def _weeks(found: JudgedExperiment) -> Iterator[Note]:
    experiment = found.experiment
    beyond = len(experiment.days) % WEEK if experiment.end is not None else 0
    if experiment.whole_weeks and beyond:
        text = f"The end, {experiment.end}, is {counted(beyond, 'day')} after a whole week: "
        text += "weekdays differ, so let it last whole weeks (whole_weeks)."
        yield Note("whole weeks", text, Severity.WARNING)
    if experiment.exclude:
        days = ", ".join(str(day) for day in experiment.exclude)
        yield Note("excluded", f"Without {days} (exclude); a decision has to hold with them, too.")


def _plan(found: JudgedExperiment) -> Iterator[Note]:
    experiment = found.experiment
    if experiment.decide != "at_end":
        return
    users, planned = sum(found.users.values()), experiment.planned_users
    size = "" if planned is None else f" ({users:,} of {planned:,} planned users so far)"
    text = f"One look after the last day, {experiment.end}, decides{size}; before that only harm is"
    if planned is not None and users < planned:
        short = "With fewer users the range that holds at every look decides."
        is_last = found.last is not None and found.last == experiment.end
        severity = Severity.WARNING if is_last else Severity.INFO
        yield Note("plan", f"{text} reported. {short}", severity)
    else:
        yield Note("plan", f"{text} reported.")


def _odd(found: JudgedExperiment, odd: OddDay) -> Note:
    """What a day does to a lift, and in which arm and part it lies."""
    metric = found.primary
    whole, without = (
        shown_lift(metric.found, each, metric.form).words for each in (odd.whole, odd.without)
    )
    amounts = "; ".join(f"{arm} {words}" for arm, words in odd.amounts.items())
    return Note(
        "odd day",
        f"{odd.day} is odd: the lift of {odd.whole.arm} is {whole}, without this day {without}. "
        f"Per active user on that day: {amounts}. See what was logged; exclude leaves a day out.",
        Severity.WARNING,
        metric.name,
    )


def _several_arms(found: JudgedExperiment) -> Iterator[Note]:
    several, ratio = found.users_in_several_arms, found.several_arms_ratio
    if ratio >= MANY_IN_SEVERAL_ARMS or found.leaning:
        began = f"{found.leaning}. " if found.leaning else ""
        yield Note(
            "several arms",
            f"{counted(several, 'user')} ({percent(ratio)} of all who were in an arm) were seen in "
            f"several arms and are excluded. {began}If one arm makes users switch, or loses their "
            "identity, the remaining users cannot be compared: check that users keep their arm.",
            Severity.BAD if found.leaning else Severity.WARNING,
        )
    elif several:
        are = "is" if several == 1 else "are"
        yield Note(
            "several arms", f"{counted(several, 'user')} seen in several arms {are} excluded."
        )


def _outside(found: JudgedExperiment) -> Iterator[Note]:
    outside = found.outside
    if outside is None or not (outside.before_exposure or outside.unexposed):
        return
    is_own = found.experiment.outcomes == "attributed"
    early = "without their user's arm" if is_own else "before their user's exposure"
    yield Note(
        "outcomes",
        f"Outcomes ignored: {outside.before_exposure:,} {early}, {outside.unexposed:,} of users "
        "who never saw an arm.",
    )


def _disagreement(found: JudgedExperiment, metric: JudgedMetric) -> Iterator[Note]:
    """Where the lift of outcomes by their own time is not that of those that joined impressions."""
    plain = [m for m in found.metrics if m.name == metric.name.replace("_attributed", "")]
    if not plain or plain[0].name == metric.name:
        return
    for one, two in zip(plain[0].found.comparisons, metric.found.comparisons, strict=True):
        lifts = [(its.relative.value, its.relative.stderr) for its in (one, two)]
        (a, error_a), (b, error_b) = lifts
        if a is None or b is None or not error_a or not error_b:
            continue
        if abs(a - b) > APART * hypot(error_a, error_b):
            text = (
                f"The lift of {one.arm} is {change(a)} by {plain[0].name}, and {change(b)} here: "
                "one arm has repeats without event_id, or outcomes that join no impression."
            )
            yield Note("disagreement", text, Severity.WARNING, metric.name)


def _window(found: JudgedExperiment, metric: JudgedMetric) -> Iterator[Note]:
    """Of which days of users it is."""
    own = next(each for each in found.experiment.metrics if each.name == metric.name)
    if own.within_days is None:
        return
    text = f"Only the first {counted(own.within_days, 'day')} of each user count (within)"
    if own.mature:
        had = sum(arm.users for arm in metric.found.arms)
        text += f", of the {had:,} users who have had them (mature)"
    yield Note("window", f"{text}.", metric=metric.name)


def _cap(metric: JudgedMetric) -> Iterator[Note]:
    """Who counts for less than all."""
    if metric.capped_at is None:
        return
    most = f"A user counts for at most {metric.capped_at:,.6g}"
    if metric.counted == "users":
        text = f"{most} (cap)."
    else:
        text = f"{most} {metric.counted}, the heavier ones with less weight (cap)."
    yield Note("cap", text, metric=metric.name)


def _heaviest(metric: JudgedMetric) -> Iterator[Note]:
    """Who has most."""
    for arm, its in metric.largest.items():
        if its.share >= HEAVY:
            who = "user has" if its.users == 1 else f"{its.users} users have"
            text = f"The largest {who} {percent(its.share)} of the {metric.counted} of {arm}."
            yield Note("heaviest users", text, metric=metric.name)


def _groups(
    metric: JudgedMetric, groups: Mapping[str, MetricComparisons], by: str
) -> Iterator[Note]:
    """The lift of each treatment by groups of users."""
    for place, comparison in enumerate(metric.found.comparisons):
        lifts = {
            name: shown_lift(its, its.comparisons[place], metric.form)
            for name, its in groups.items()
        }
        if len(lifts) > 1:
            said = "; ".join(f"{name} {lift.words}" for name, lift in lifts.items())
            text = f"Lift of {comparison.arm} by {by}: {said}."
            yield Note("ages" if groups is metric.ages else "periods", text, metric=metric.name)


_TOLD = {
    Told.PENDING: "still to be told",
    Told.DELIVERED: "told",
    Told.FAILED: "could not be told",
    Told.DRY_RUN: "would have been told",
}


def note_of_decision(decision: ToldDecision) -> Note:
    """What was acted on, which stands whatever the readout says now."""
    record, words = decision.record, []
    for state, text in _TOLD.items():
        hosts = sorted({sent.place for sent in decision.told if sent.state is state})
        if hosts:
            words.append(f"{text}: {', '.join(hosts)}")
    to = f" ({'; '.join(words)})" if words else ""
    severity = Severity.INFO if record.kind == "decided" else Severity.WARNING
    return Note("acted on", f"{minute(record.at_ms)} UTC: {record.sentence}{to}.", severity)
