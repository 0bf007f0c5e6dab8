"""What there is to tell of experiments now, by the readout that every face shows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

import msgspec

from streamer.query.experiment_list import ListedExperiment
from streamer.query.experiment_metrics import JudgedMetric
from streamer.query.experiments import JudgedExperiment, users_of
from streamer.query.losses import losses_of
from streamer.settings.durations import DAY_MS, date_of, day_of
from streamer.state.acted import Acted, ActionRecord, Numbers
from streamer.stats.experiments.recommendation import DECISIONS, DISTRUST, Action, Recommendation
from streamer.stats.experiments.verdict import Outcome, Scale

_HARMED = (Outcome.WORSE, Outcome.HARM)
_DECISIONS = ("harm", "guardrail", "decided")
_LEAST_EXPOSED = 100
"""Users of an arm on the days before, from which on a day without any is told."""


class Occasion(msgspec.Struct, frozen=True):
    """Something that holds of an experiment now."""

    kind: str
    arm: str
    action: str
    sentence: str
    reason: str
    since: datetime.date | None = None
    numbers: Numbers | None = None


class Look(msgspec.Struct, frozen=True):
    """A look at all experiments: ``at_ms`` by the store's clock, ``stream_ms`` of the ``commits``
    by partition, ``seen_ms`` of the look before. ``looked_ms``: when anybody looked before, 0 where
    nobody did. Nobody is told of what was over for longer than ``max_age_ms``."""

    at_ms: int
    stream_ms: int
    seen_ms: int
    commits: Mapping[int, int]
    looked_ms: int
    max_age_ms: int


def occasions_of(listed: ListedExperiment) -> list[Occasion]:
    """Of one experiment; none before its first day."""
    advice = listed.readout.recommendation
    if advice is None:
        return []
    advised = list(_advised(listed.readout, advice))
    if not any(each.kind == "split" for each in advised):
        advised += _lost(listed)
    return [*advised, *_without_data(listed)]


def _advised(readout: JudgedExperiment, advice: Recommendation) -> Iterator[Occasion]:
    sentence = f"{readout.experiment.name}: {advice.words}"
    made = partial(Occasion, action=str(advice.action), sentence=sentence, reason=advice.reason)
    if advice.action in DISTRUST:
        if advice.action is not Action.CHANGED:
            yield made("split", "")
        return
    arm = advice.arm or readout.focus
    if advice.action is Action.STOP_HARM:
        harmed = _harmed(readout, arm)
        kind = "harm" if harmed is readout.primary else "guardrail"
        yield made(kind, arm, since=advice.since, numbers=_numbers(harmed, arm))
    elif advice.action in DECISIONS:
        numbers = _numbers(readout.primary, arm)
        yield made("decided", advice.arm or "", since=advice.since, numbers=numbers)


def _lost(listed: ListedExperiment) -> Iterator[Occasion]:
    """Treatments that have cost more than they may."""
    experiment = listed.stored.experiment
    for loss in losses_of(experiment, listed.readout.metrics, listed.stored.ratios):
        if loss.is_too_much:
            sentence = f"{experiment.name}: {loss.arm} costs too much. {loss.words}"
            reason = "That nothing is lost is ruled out at 0.001, however often you look."
            numbers = _numbers(loss.metric, loss.arm)
            yield Occasion("loss", loss.arm, "stop: loss", sentence, reason, numbers=numbers)


def _harmed(readout: JudgedExperiment, arm: str) -> JudgedMetric:
    """The metric that is harmed: the primary one, where it is."""
    guardrails = (metric for metric in readout.metrics if metric.role == "guardrail")
    for metric in (readout.primary, *guardrails):
        if any(c.arm == arm and c.verdict.outcome in _HARMED for c in metric.found.comparisons):
            return metric
    return readout.primary


def _numbers(metric: JudgedMetric, arm: str) -> Numbers | None:
    control = metric.found.arms[0]
    for comparison in metric.found.comparisons:
        if comparison.arm == arm:
            is_relative = comparison.verdict.scale is Scale.RELATIVE
            lift = comparison.relative if is_relative else comparison.absolute
            treated = next(each for each in metric.found.arms if each.name == arm)
            ends = lift.anytime
            low, high = (None, None) if ends is None else (ends.low, ends.high)
            users = control.users + treated.users
            shown = (control.shown, treated.shown)
            return Numbers(metric.name, users, *shown, lift.value, low, high, is_relative)
    return None


def _without_data(listed: ListedExperiment) -> Iterator[Occasion]:
    """A whole day on which nobody was exposed for the first time, after days on which many were."""
    stored = listed.stored
    last = stored.stream_ms // DAY_MS - 1
    first = stored.trial.days.start
    if stored.is_over or last - 1 < first:
        return
    days = range(max(first, last - 3) - 1, last + 1)
    upto = [users_of(stored.trial, stored.parts, day) for day in days]
    *before, today = (after - users for users, after in pairwise(upto))
    if not today and before and before[-1] >= _LEAST_EXPOSED:
        day = date_of(last)
        name = stored.experiment.name
        sentence = f"{name}: nobody was exposed on {day}, {before[-1]:,} users the day before"
        yield Occasion("no_data", "", "no data", sentence, "", day)


def new_records(
    experiments: Iterable[ListedExperiment], acted: Acted, look: Look
) -> list[ActionRecord]:
    """The records that are to be written: one for each occasion that is not recorded, or was
    withdrawn since, and one for each decision that no longer stands."""
    known = acted.ordered()
    return [
        record
        for listed in experiments
        for record in _of_experiment(listed, occasions_of(listed), known, look)
    ]


def _of_experiment(
    listed: ListedExperiment,
    occasions: Sequence[Occasion],
    known: Sequence[ActionRecord],
    look: Look,
) -> Iterator[ActionRecord]:
    experiment = listed.stored.experiment
    own = [r for r in known if (r.experiment, r.start) == (experiment.name, experiment.start)]
    standing = _standing(own)
    for occasion in occasions:
        before = standing.get((occasion.kind, occasion.arm))
        if before is None or (occasion.kind == "no_data" and before.since != occasion.since):
            yield _record(listed, occasion, own, look)
    still = {(occasion.kind, occasion.arm) for occasion in occasions}
    for (kind, arm), record in standing.items():
        if kind in _DECISIONS and (kind, arm) not in still:
            yield _record(listed, _withdrawal(listed, record), own, look)


def _standing(own: Iterable[ActionRecord]) -> dict[tuple[str, str], ActionRecord]:
    """The last record of each kind and arm that was not withdrawn."""
    standing: dict[tuple[str, str], ActionRecord] = {}
    for record in own:
        if record.kind == "withdrawn":
            standing = {of: known for of, known in standing.items() if of[0] not in _DECISIONS}
        else:
            standing[record.kind, record.arm] = record
    return standing


def _withdrawal(listed: ListedExperiment, record: ActionRecord) -> Occasion:
    advice = listed.readout.recommendation
    now = "nothing is known any more" if advice is None else f"it is now: {advice.words}"
    name, reason = record.experiment, "" if advice is None else advice.reason
    sentence = f"{name}: {record.action!r} no longer stands; {now}"
    return Occasion("withdrawn", record.arm, record.action, sentence, reason)


def _record(
    listed: ListedExperiment, occasion: Occasion, own: Sequence[ActionRecord], look: Look
) -> ActionRecord:
    experiment = listed.stored.experiment
    like = sum((each.kind, each.arm) == (occasion.kind, occasion.arm) for each in own)
    parts = (experiment.name, str(experiment.start), occasion.kind, occasion.arm, str(like + 1))
    return ActionRecord(
        key="/".join(filter(None, parts)),
        kind=occasion.kind,
        experiment=experiment.name,
        start=experiment.start,
        arm=occasion.arm,
        action=occasion.action,
        sentence=occasion.sentence,
        reason=occasion.reason,
        at_ms=look.at_ms,
        stream_ms=look.stream_ms,
        commits=look.commits,
        since=occasion.since,
        numbers=occasion.numbers,
        owner=experiment.owner,
        url=experiment.url,
        is_past=_is_past(occasion, look),
        seen_ms=look.seen_ms,
    )


def _is_past(occasion: Occasion, look: Look) -> bool:
    """Whether it had happened long before anybody looked: the day of a decision is over for longer;
    or nobody has ever looked before, and it is not of now."""
    if occasion.kind == "withdrawn":
        return False
    if occasion.since is not None:
        ended_ms = (day_of(occasion.since) + 1) * DAY_MS
        return look.stream_ms - ended_ms > look.max_age_ms
    is_recent = look.at_ms - look.stream_ms <= look.max_age_ms
    is_of_now = occasion.kind in (*_DECISIONS, "loss") and is_recent
    return not look.looked_ms and not is_of_now
