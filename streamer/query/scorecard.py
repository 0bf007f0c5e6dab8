"""An experiment for who has to decide: one sentence, one line of impact, and every comparison as
texts and bars. The page and the report lay it out."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamer.formatting import counted, p_words, share, two_digits
from streamer.query.exploration import Exploration
from streamer.query.notes import Severity
from streamer.query.pills import BAD, GOOD, OPEN, WARN, Pill
from streamer.query.readout import (
    AgeReading,
    ComparisonReading,
    MetricReading,
    Readout,
)
from streamer.query.shown_lift import ShownLift, lift_of
from streamer.stats.experiments.estimate import Estimate
from streamer.stats.experiments.recommendation import DISTRUST, Action
from streamer.stats.experiments.verdict import Outcome, Scale

_DAY_MS = 86_400_000
_PER = 1000
"""Impact is said for so many of what the metric counts."""
_KINDS = {Severity.GOOD: GOOD, Severity.INFO: "", Severity.WARNING: WARN, Severity.BAD: BAD}


@dataclass(frozen=True)
class CardRow:
    """A comparison of the scorecard, with the values of control and treatment."""

    metric: MetricReading
    comparison: ComparisonReading
    values: Sequence[str]
    facts: Sequence[tuple[str, str]]
    trend: Sequence[float]
    """The lift at the end of each day, where it was known."""


@dataclass(frozen=True)
class ForestRow:
    """A group of users of a forest plot."""

    title: str
    users: int
    lift: ShownLift


@dataclass(frozen=True)
class DailyLift:
    """A lift as it stood at the end of a day."""

    day: datetime.date
    users: Mapping[str, int]
    lift: ShownLift


@dataclass(frozen=True)
class Fact:
    """A line of the health of an experiment, or of its settings."""

    title: str
    text: str
    kind: str = ""


@dataclass(frozen=True)
class ForestPlot:
    """The primary metric by groups of users."""

    title: str
    question: str
    rows: Sequence[ForestRow]
    sentences: Sequence[str]


@dataclass(frozen=True)
class Scorecard:
    """``focus``: the treatment that the sentence, the course and the forests are about.
    ``primary``: the title of the metric that decides; ``form``: how its lifts are written, where
    they are no shares of the control's value. ``units``: what is counted in arms."""

    readout: Readout
    primary: str
    form: str | None
    units: str
    focus: str
    sentence: str
    sure: Sequence[str]
    impact: str
    split: Fact | None
    rows: Sequence[CardRow]
    course: Sequence[DailyLift]
    ages: ForestPlot | None
    segments: Sequence[ForestPlot]
    health: Sequence[Fact]
    settings: Sequence[Fact]

    @property
    def pill(self) -> Pill | None:
        """What to do."""
        advice = self.readout.recommendation
        return None if advice is None else advice.pill


def scorecard(
    found: Readout, explorations: Sequence[Exploration] = (), focus: str | None = None
) -> Scorecard:
    """That of a readout. ``explorations``: by other dimensions; ``focus``: the treatment to look
    at, where it is not the readout's."""
    has_begun = found.last is not None
    arm = focus or found.focus
    primary = found.primary
    is_relative = primary.of(arm).lift.scale is Scale.RELATIVE
    return Scorecard(
        readout=found,
        primary=_lower(primary.title),
        form=None if is_relative else primary.form,
        units="users" if found.unit == "user" else "units",
        focus=arm,
        sentence=_sentence(found, primary, arm) if has_begun else f"It {found.when}.",
        sure=list(_sure(found, arm)) if has_begun else [],
        impact=_impact(found, primary, arm) if has_begun else "",
        split=_split(found) if has_begun else None,
        rows=list(_rows(found)) if has_begun else [],
        course=list(_course(found, primary, arm)),
        ages=_ages(primary.ages, arm) if has_begun else None,
        segments=[_segments(each, arm) for each in explorations],
        health=list(_health(found)),
        settings=list(_settings(found)),
    )


# What to do ------------------------------------------------------------------------------------


def _sentence(found: Readout, primary: MetricReading, arm: str) -> str:
    """What happened, in a sentence or two."""
    advice = found.recommendation
    if advice is not None and advice.action is Action.DO_NOT_USE:
        return (
            "The users are not divided as planned. Assignment or logging is broken for an arm: do "
            "not use these numbers."
        )
    if advice is not None and advice.action is Action.DO_NOT_USE_ARMS:
        several = share(found.users_in_several_arms_ratio)
        return f"{several} of the users were seen in more than one arm: do not use these numbers."
    if advice is not None and advice.action is Action.CHANGED:
        return "The effect is not what it was when it was decided: do not use these numbers."
    moved = " ".join(filter(None, (_moved(found, primary, arm), _guardrail_sentence(found, arm))))
    if advice is None or advice.since is None:
        return moved
    return f"{advice.pill.words}, as decided at the end of {advice.since}. Today: {moved}"


def _moved(found: Readout, primary: MetricReading, arm: str) -> str:
    lift, title = primary.of(arm).lift, _lower(primary.title)
    then, now = primary.value(found.control), primary.value(arm)
    if lift.value is None or then.value is None or now.value is None:
        return f"Too early to tell whether {arm} changes the {title}."
    if lift.low is None or lift.high is None:
        both = f"{then.text} without it, {now.text} with it"
        return f"Too early to tell whether {arm} changes the {title}: {both} so far."
    write = lift.scale.writer(primary.form)
    if lift.low <= 0 <= lift.high:
        return f"Too early to tell: {arm} may change the {title} by anything from {lift.range}."
    verb, nearest = ("raises", lift.low) if lift.low > 0 else ("lowers", lift.high)
    values, sure = f"from {then.text} to {now.text}", f"{lift.text}, at least {write(nearest)}"
    if lift.unadjusted is None:
        return f"{_capital(arm)} {verb} the {title} {values}: {sure}."
    return (
        f"{_capital(arm)} {verb} the {title}: {sure}, adjusted for {lift.unadjusted.adjusted_for} "
        f"(unadjusted {values}: {lift.unadjusted.text})."
    )


def _guardrail_sentence(found: Readout, arm: str) -> str:
    guards = [m for m in found.metrics if m.role == "guardrail"]
    outcomes = {m.title: m.of(arm).verdict.outcome for m in guards}
    harmed = [title for title, outcome in outcomes.items() if outcome is Outcome.HARM]
    open_ = [
        title
        for title, outcome in outcomes.items()
        if outcome in (Outcome.TOO_EARLY, Outcome.WORSE_WITHIN)
    ]
    if harmed:
        return (
            f"{_joined(harmed)} {'is' if len(harmed) == 1 else 'are'} harmed more than tolerated."
        )
    if open_:
        return f"Whether {_joined([_lower(title) for title in open_])} suffers is not known yet."
    return "No guardrail is harmed." if outcomes else ""


def _sure(found: Readout, arm: str) -> Iterator[str]:
    """What the sentence rests on."""
    percent = share(found.alpha)
    level = share(1 - found.alpha)
    if found.decide == "at_end":
        yield (
            f"It is decided by one look after the last day: if {arm} made no difference, at most "
            f"{percent} of experiments would be decided like this. Ranges until then hold at every "
            "look."
        )
    else:
        yield (
            f"If {arm} made no difference, at most {percent} of experiments would ever look like "
            f"this, even if you check every day. Ranges are {level} and safe to check daily."
        )
    if found.recommendation is not None:
        yield found.recommendation.reason


def _impact(found: Readout, primary: MetricReading, arm: str) -> str:
    """What the lift comes to, for a count; nothing where the interval does not exclude 0."""
    estimate, advice = primary.of(arm).absolute, found.recommendation
    noun, data, total = primary.counts, found.data, primary.denominator
    interval = estimate.fixed if found.decide == "at_end" else estimate.anytime
    if interval is None or interval.low <= 0 <= interval.high or estimate.value is None:
        return ""
    if not noun or not total or not data or advice is None or advice.action in DISTRUST:
        return ""
    lift, below = estimate.value, primary.counted
    more = "more" if lift > 0 else "fewer"
    said = f"That is {two_digits(abs(lift) * _PER)} {more} {noun} per {_PER:,} {below}"
    days = (data.to_ms - data.from_ms) / _DAY_MS
    if data.days < 1 or days < 1:
        return f"{said}."
    daily = total / days
    ends = sorted(abs(end) * daily for end in (interval.low, interval.high))
    return (
        f"{said}: about {two_digits(abs(lift) * daily)} a day ({two_digits(ends[0])} to "
        f"{two_digits(ends[1])}) at the experiment's {two_digits(daily)} {below} a day, if {arm} "
        f"replaces {found.control} everywhere."
    )


# Lifts -----------------------------------------------------------------------------------------


def _rows(found: Readout) -> Iterator[CardRow]:
    """Every metric of every treatment, the primary one first."""
    order = {"primary": 0, "guardrail": 2}
    for metric in sorted(found.metrics, key=lambda each: order.get(each.role, 1)):
        for comparison in metric.comparisons:
            arm = comparison.arm
            yield CardRow(
                metric,
                comparison,
                [metric.value(each).text for each in (found.control, arm)],
                list(_facts(metric, comparison)),
                [its.value for *_, its in _days(found, metric, arm) if its.value is not None],
            )


def _facts(metric: MetricReading, comparison: ComparisonReading) -> Iterator[tuple[str, str]]:
    """All numbers of a comparison."""
    yield "Name", metric.name
    judged = {Scale.RELATIVE: comparison.relative, Scale.ABSOLUTE: comparison.absolute}
    yield from _changes("", metric, judged)
    if comparison.adjustment is not None:
        plain = comparison.adjustment.unadjusted
        raw = {Scale.RELATIVE: plain.relative, Scale.ABSOLUTE: plain.absolute}
        yield from _changes("unadjusted, ", metric, raw)
    yield from ((each.title, each.text) for each in comparison.statistics)


def _changes(
    of: str, metric: MetricReading, lifts: Mapping[Scale, Estimate]
) -> Iterator[tuple[str, str]]:
    for scale, estimate in lifts.items():
        if estimate.value is None:
            continue
        texts = [scale.writer(metric.form)(estimate.value)]
        each = ((estimate.anytime, "safe to check daily"), (estimate.fixed, "one look"))
        for interval, title in each:
            if interval is not None:
                its = lift_of(estimate, interval, scale, metric.form)
                texts.append(f"{its.range} ({title}, {p_words(interval.p_adjusted)})")
        yield f"Change, {of}{scale}", "; ".join(texts)


def _days(
    found: Readout, metric: MetricReading, arm: str
) -> Iterator[tuple[datetime.date, Mapping[str, int], Estimate]]:
    for day in found.history or ():
        if metric.name in day.metrics and arm in day.metrics[metric.name]:
            yield day.day, day.users, day.metrics[metric.name][arm]


def _course(found: Readout, primary: MetricReading, arm: str) -> Iterator[DailyLift]:
    scale = primary.of(arm).lift.scale
    for day, users, its in _days(found, primary, arm):
        if its.value is not None:
            yield DailyLift(day, users, lift_of(its, its.anytime, scale, primary.form))


# Groups of users -------------------------------------------------------------------------------


def _ages(ages: Sequence[AgeReading], arm: str) -> ForestPlot | None:
    rows = []
    for entry in ages:
        comparison = next(each for each in entry.comparisons if each.arm == arm)
        users = sum(its.users for its in entry.arms)
        rows.append(ForestRow(entry.age.capitalize(), users, comparison.lift))
    if len(rows) < 2:
        return None
    words = "A change that shrinks from row to row is a novelty effect."
    return ForestPlot("By days since exposure", "Does the effect fade?", rows, [words])


def _segments(found: Exploration, arm: str) -> ForestPlot:
    rows = [
        ForestRow(value, sum(its.users.values()), its.primary.of(arm).lift)
        for value, its in found.values.items()
        if its.last is not None
    ]
    tests = [each.sentence for each in found.heterogeneity if each.arm == arm]
    return ForestPlot(f"By {found.by}", "Is it the same everywhere?", rows, [*tests, found.words])


# What it rests on ------------------------------------------------------------------------------


def _split(found: Readout) -> Fact:
    split = found.split
    total = sum(split.users.values())
    shares = " : ".join(f"{100 * n / total:.1f}" if total else "–" for n in split.users.values())
    planned = " : ".join(share(p).rstrip("%") for p in split.expected.values())
    kind = BAD if split.is_wrong else GOOD if total and not split.is_unusual else OPEN
    return Fact("Split", f"{shares}, planned {planned}", kind)


def _health(found: Readout) -> Iterator[Fact]:
    titles = {metric.name: metric.title for metric in found.metrics}
    for note in found.notes:
        title = titles.get(note.metric, note.kind.capitalize())
        yield Fact(title, note.text, _KINDS[note.severity])


def _settings(found: Readout) -> Iterator[Fact]:
    planned = ", ".join(f"{arm} {share(part)}" for arm, part in found.split.expected.items())
    yield Fact("Arms", f"{found.control} is the control; planned: {planned}")
    where = found.dimension or ", ".join(found.arm) or "the schedule"
    yield Fact("Where events say the arm", where)
    yield Fact("Unit", found.unit)
    for metric in found.metrics:
        yield Fact(metric.role.capitalize(), f"{metric.title}, {metric.rule} ({metric.name})")
    level = share(1 - found.alpha)
    how = "one look after the last day" if found.decide == "at_end" else "safe to check daily"
    yield Fact("Ranges", f"{level}, {how}; at least {counted(found.min_days, 'whole day')}")
    if found.covariate_days:
        before = counted(found.covariate_days, "day")
        yield Fact("Less noise", f"what users did in the {before} before is taken into account")
    end = f" to {found.end}" if found.end else ""
    yield Fact("Declared", f"{found.start}{end}")


# Words -----------------------------------------------------------------------------------------


def _capital(arm: str) -> str:
    """The name of an arm at the beginning of a sentence.

    >>> _capital("new"), _capital("v2_big"), _capital("B")
    ('New', 'v2_big', 'B')
    """
    return arm[0].upper() + arm[1:] if arm.isalpha() else arm


def _lower(title: str) -> str:
    """A title within a sentence; abbreviations stay.

    >>> _lower("Click-through rate"), _lower("NDCG@10")
    ('click-through rate', 'NDCG@10')
    """
    return title if title[1:2].isupper() else title[0].lower() + title[1:]


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
