"""What is said of an experiment beside its numbers: every face shows all of it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from streamer.formatting import counted, minute, percent
from streamer.query.experiment_metrics import JudgedMetric
from streamer.query.experiments import JudgedExperiment, began, sampled, unit_words
from streamer.query.shown_lift import shown_lift
from streamer.settings.schedules import tied_to_hours
from streamer.stats.experiments.srm import Split

HEAVY = 0.1
"""Share of a denominator from which on it is said that a few users have it."""
MANY_IN_SEVERAL_ARMS = 0.01
"""Share of users seen in several arms from which on that is a warning."""


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


def notes_of(found: JudgedExperiment) -> Iterator[Note]:
    """All of an experiment, from its first day on."""
    if found.last is None:
        return
    yield _data(found)
    yield from _unit(found)
    yield from _plan(found)
    yield _split(found.metrics[0].found.split)
    yield from _slots(found)
    yield from _left_early(found)
    yield from _several_arms(found)
    yield from _outside(found)
    for metric in found.metrics:
        if metric.definition:
            yield Note("definition", f"{metric.definition}.", metric=metric.name)
        yield from _cap(metric)
        yield from _heaviest(metric)
        yield from _ages(metric)
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


def _plan(found: JudgedExperiment) -> Iterator[Note]:
    experiment = found.experiment
    if experiment.decide != "at_end":
        return
    users, planned = sum(found.users.values()), experiment.planned_users
    size = "" if planned is None else f" ({users:,} of {planned:,} planned users so far)"
    yield Note(
        "plan",
        f"One look after the last day, {experiment.end}, decides{size}; before that only harm is "
        "reported.",
    )


def _several_arms(found: JudgedExperiment) -> Iterator[Note]:
    several, ratio = found.users_in_several_arms, found.several_arms_ratio
    if ratio >= MANY_IN_SEVERAL_ARMS:
        yield Note(
            "several arms",
            f"{counted(several, 'user')} ({percent(ratio)} of all who were in an arm) were seen in "
            "several arms and are excluded. If one arm makes users switch, or loses their "
            "identity, the remaining users cannot be compared: check that users keep their arm.",
            Severity.WARNING,
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


def _ages(metric: JudgedMetric) -> Iterator[Note]:
    """The lift of each treatment by days since a user's first."""
    for place, comparison in enumerate(metric.found.comparisons):
        lifts = {
            age: shown_lift(its, its.comparisons[place], metric.form)
            for age, its in metric.ages.items()
        }
        if len(lifts) > 1:
            said = "; ".join(f"{age} {lift.words}" for age, lift in lifts.items())
            text = f"Lift of {comparison.arm} by days since a user's exposure: {said}."
            yield Note("ages", text, metric=metric.name)
