"""What there is to tell of experiments now, by the readout that every face shows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from streamer.query.experiment_list import ListedExperiment
from streamer.query.experiment_metrics import JudgedMetric
from streamer.query.experiments import JudgedExperiment, users_of
from streamer.query.losses import losses_of
from streamer.settings.durations import DAY_MS, date_of, day_of
from streamer.state.acted import ActionRecord, Numbers
from streamer.stats.experiments.recommendation import DISTRUST, Action, Recommendation
from streamer.stats.experiments.verdict import Outcome, Scale

_HARMED = (Outcome.WORSE, Outcome.HARM)
_DECISIONS = ("harm", "guardrail", "decided")
_KINDS = {Action.SHIP: "decided", Action.STOP_NO_EFFECT: "decided"}
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


def occasions_of(listed: ListedExperiment) -> list[Occasion]:
    """Of one experiment; none before its first day."""
    found = listed.readout
    advice = found.recommendation
    if advice is None:
        return []
    advised = list(_advised(found, advice))
    if not any(each.kind == "split" for each in advised):
        advised += _lost(listed)
    return [*advised, *_without_data(listed)]


def _advised(found: JudgedExperiment, advice: Recommendation) -> Iterator[Occasion]:
    name = found.experiment.name
    arm = advice.arm or (found.focus if advice.action is Action.STOP_HARM else "")
    said = (str(advice.action), f"{name}: {advice.words}", advice.reason)
    if advice.action in DISTRUST:
        is_changed = advice.action is Action.CHANGED
        if not is_changed:
            yield Occasion("split", "", *said)
    elif advice.action is Action.STOP_HARM:
        harmed = _harmed(found, arm)
        kind = "harm" if harmed is found.primary else "guardrail"
        yield Occasion(kind, arm, *said, advice.since, _numbers(harmed, arm))
    elif advice.action in _KINDS:
        numbers = _numbers(found.primary, arm or found.focus)
        yield Occasion(_KINDS[advice.action], arm, *said, advice.since, numbers)


def _lost(listed: ListedExperiment) -> Iterator[Occasion]:
    """Treatments that have cost more than they may."""
    found, experiment = listed.readout, listed.stored.experiment
    for each in losses_of(experiment, found.metrics, listed.stored.ratios):
        if each.is_too_much:
            sentence = f"{experiment.name}: {each.arm} costs too much. {each.words}"
            reason = "That nothing is lost is excluded at 0.001, however often one looks."
            numbers = _numbers(each.metric, each.arm)
            yield Occasion("loss", each.arm, "stop: loss", sentence, reason, None, numbers)


def _harmed(found: JudgedExperiment, arm: str) -> JudgedMetric:
    """The metric that is harmed: the primary one, where it is."""
    first = [found.primary, *(each for each in found.metrics if each.role == "guardrail")]
    for metric in first:
        if any(c.arm == arm and c.verdict.outcome in _HARMED for c in metric.found.comparisons):
            return metric
    return found.primary


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
    found: Mapping[str, tuple[ListedExperiment, Sequence[Occasion]]],
    known: Sequence[ActionRecord],
    made: ActionRecord,
) -> list[ActionRecord]:
    """The records that are to be written: one for each occasion that is not recorded, or was
    withdrawn since, and one for each decision that no longer stands. ``made``: one with the moment
    at which was looked."""
    return [
        each
        for listed, occasions in found.values()
        for each in _of_experiment(listed, occasions, known, made)
    ]


def _of_experiment(
    listed: ListedExperiment,
    occasions: Iterable[Occasion],
    known: Sequence[ActionRecord],
    made: ActionRecord,
) -> Iterator[ActionRecord]:
    experiment = listed.stored.experiment
    own = [r for r in known if (r.experiment, r.start) == (experiment.name, experiment.start)]
    standing = _standing(own)
    held = set()
    for occasion in occasions:
        held.add((occasion.kind, occasion.arm))
        before = standing.get((occasion.kind, occasion.arm))
        if before is None or (occasion.kind == "no_data" and before.since != occasion.since):
            yield _record(listed, occasion, own, made)
    for (kind, arm), record in standing.items():
        if kind in _DECISIONS and (kind, arm) not in held:
            yield _record(listed, _withdrawal(listed, record), own, made)


def _standing(own: Iterable[ActionRecord]) -> dict[tuple[str, str], ActionRecord]:
    """The last record of each kind and arm that was not withdrawn."""
    found: dict[tuple[str, str], ActionRecord] = {}
    for record in own:
        if record.kind == "withdrawn":
            found = {at: each for at, each in found.items() if at[0] not in _DECISIONS}
        else:
            found[record.kind, record.arm] = record
    return found


def _withdrawal(listed: ListedExperiment, record: ActionRecord) -> Occasion:
    advice = listed.readout.recommendation
    now = "nothing is known any more" if advice is None else f"it is now: {advice.words}"
    name, reason = record.experiment, "" if advice is None else advice.reason
    sentence = f"{name}: {record.action!r} no longer stands; {now}"
    return Occasion("withdrawn", record.arm, record.action, sentence, reason)


def _record(
    listed: ListedExperiment,
    occasion: Occasion,
    own: Sequence[ActionRecord],
    made: ActionRecord,
) -> ActionRecord:
    experiment = listed.stored.experiment
    like = sum((each.kind, each.arm) == (occasion.kind, occasion.arm) for each in own)
    parts = (experiment.name, str(experiment.start), occasion.kind, occasion.arm, str(like + 1))
    return msgspec.structs.replace(
        made,
        key="/".join(filter(None, parts)),
        experiment=experiment.name,
        start=experiment.start,
        owner=experiment.owner,
        url=experiment.url,
        **{name: getattr(occasion, name) for name in Occasion.__struct_fields__},
    )


def is_past(record: ActionRecord, max_age_ms: int, looked_ms: int) -> bool:
    """Whether it had happened long before anybody looked: the day of a decision is over for longer;
    or nobody has ever looked before, and it is not of now."""
    if record.kind == "withdrawn":
        return False
    if record.since is not None:
        ended_ms = (day_of(record.since) + 1) * DAY_MS
        return record.stream_ms - ended_ms > max_age_ms
    is_of_now = (
        record.kind in (*_DECISIONS, "loss") and record.at_ms - record.stream_ms <= max_age_ms
    )
    return not looked_ms and not is_of_now
