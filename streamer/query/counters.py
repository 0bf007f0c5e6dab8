"""What is counted beside the families: acceptance, joins, bounds, stream time.

Declared as the metrics are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamer.metrics.definition import Family, Sample, SeriesDeclarations
from streamer.metrics.rollups import key_of
from streamer.query.checks import AlertVerdict
from streamer.query.exactness import Inexact
from streamer.query.experiments import JudgedExperiment
from streamer.settings.clusters import MAIN
from streamer.settings.model import Settings
from streamer.state.snapshot import Header
from streamer.state.topics import TopicState

FEEDBACK = ("clicks", "conversions")
"""Topics whose events join impressions."""


@dataclass(frozen=True)
class CounterInputs:
    """What counters are read from: headers of all partitions, experiments, what alerts watch."""

    settings: Settings
    headers: Sequence[Header]
    stream_ms: int
    experiments: Sequence[JudgedExperiment] = ()
    watched: Sequence[AlertVerdict] = ()
    item_samples: Mapping[str, float] = field(default_factory=dict)
    """Window → the share of the items that is counted, where items are counted."""
    inexact: Sequence[Inexact] = ()
    """What is not exact."""

    def topics(self, log: str) -> list[TopicState]:
        """What partitions say of a log, those that know it."""
        return [header.topics[log] for header in self.headers if log in header.topics]

    def by_log(self, of: Callable[[TopicState], int]) -> Iterator[Sample]:
        """The sum over partitions, for each log."""
        for name in self.settings.logs:
            yield (name,), sum(map(of, self.topics(name)))


Samples = Callable[[CounterInputs], Iterator[Sample]]
series = SeriesDeclarations[Samples]("total")
_AT_0 = "shown at 0"


@series(
    "events_total",
    labels=("topic",),
    formula="accepted + duplicates + late + rejected + ignored",
    unit="records",
    empty=_AT_0,
)
def _events(known: CounterInputs) -> Iterator[Sample]:
    """Records seen: accepted, duplicates, late, rejected and ignored."""

    def seen(topic: TopicState) -> int:
        counted = topic.accepted + topic.duplicates + topic.late + topic.ignored
        return counted + sum(topic.rejected.values())

    return known.by_log(seen)


@series("accepted_total", labels=("topic",), formula="accepted events", unit="events", empty=_AT_0)
def _accepted(known: CounterInputs) -> Iterator[Sample]:
    """Events that were accepted and counted."""
    return known.by_log(lambda topic: topic.accepted)


@series(
    "duplicates_total",
    labels=("topic",),
    formula="events whose event_id was accepted within dedup_horizon",
    unit="events",
    empty=_AT_0,
)
def _duplicates(known: CounterInputs) -> Iterator[Sample]:
    """Copies of an accepted event_id within the horizon."""
    return known.by_log(lambda topic: topic.duplicates)


@series(
    "late_total",
    labels=("topic",),
    formula="events with arrival clock - ts > max_lateness",
    unit="events",
    empty=_AT_0,
)
def _late(known: CounterInputs) -> Iterator[Sample]:
    """Events later than max_lateness; dead-lettered."""
    return known.by_log(lambda topic: topic.late)


@series(
    "rejected_total",
    labels=("topic", "reason"),
    formula="records that are not valid events, by reason",
    unit="records",
    empty="absent for a reason not seen",
)
def _rejected(known: CounterInputs) -> Iterator[Sample]:
    """Records rejected and dead-lettered, by reason."""
    for name in known.settings.logs:
        counts = [topic.rejected for topic in known.topics(name)]
        for reason in sorted({reason for count in counts for reason in count}):
            yield (name, reason), sum(count.get(reason, 0) for count in counts)


@series(
    "ignored_total",
    labels=("topic",),
    formula="records of a kind in kind.ignored",
    unit="records",
    empty=_AT_0,
)
def _ignored(known: CounterInputs) -> Iterator[Sample]:
    """Records that a source excludes from counting."""
    return known.by_log(lambda topic: topic.ignored)


@series(
    "anonymous_total",
    labels=("topic",),
    formula="accepted events without a user",
    unit="events",
    empty=_AT_0,
)
def _anonymous(known: CounterInputs) -> Iterator[Sample]:
    """Accepted events without a user. They count in no metric of users."""
    return known.by_log(lambda topic: topic.anonymous)


@series(
    "cut_values_total",
    labels=("topic",),
    formula="values of dimensions of more than 128 characters, in accepted events",
    unit="values",
    empty=_AT_0,
)
def _cut_values(known: CounterInputs) -> Iterator[Sample]:
    """Values of dimensions that were cut because they are too long."""
    return known.by_log(lambda topic: topic.cut_values)


@series(
    "unattributed_total",
    labels=("topic",),
    formula="final and joined to nothing",
    unit="events",
    empty=_AT_0,
)
def _unattributed(known: CounterInputs) -> Iterator[Sample]:
    """Feedback that joined no impression and can no longer join one."""
    for kind in FEEDBACK:
        yield (kind,), sum(h.unattributed[kind] for h in known.headers)


@series(
    "unsettled",
    labels=("topic",),
    formula="accepted feedback - settled feedback",
    unit="events",
    empty=_AT_0,
)
def _unsettled(known: CounterInputs) -> Iterator[Sample]:
    """Feedback whose dimensions may still change; not in the totals yet."""
    for kind in FEEDBACK:
        yield (kind,), sum(h.unsettled[kind] for h in known.headers)


@series(
    "label_values_capped_total",
    labels=("dimension",),
    formula="accepted events with a value that its partition does not keep",
    unit="events",
    empty=_AT_0,
)
def _capped(known: CounterInputs) -> Iterator[Sample]:
    """Accepted events counted as `other`, because their value is beyond `max_values` of the
    dimension."""
    for i, name in enumerate(known.settings.dimension_names):
        yield (name,), sum(h.capped[i] for h in known.headers)


@series(
    "segments_capped_total",
    labels=("rollup",),
    formula="times that a segment beyond limits.segments was asked for",
    unit="times",
    empty=f"{_AT_0}; absent without a rollup of several dimensions",
)
def _segments_capped(known: CounterInputs) -> Iterator[Sample]:
    """Number of times that a rollup of several dimensions counted as `other`, because it has more
    segments than `limits.segments`. Other rollups keep their values."""
    for rollup in known.settings.rollups:
        names = [name for name in known.settings.dimension_names if name in rollup]
        if len(names) > 1:
            key = key_of(names)
            yield (key,), sum(h.overflowed.get(key, 0) for h in known.headers)


@series(
    "join_gap_total",
    formula="records below the watermark of an idle topic",
    unit="records",
    empty=_AT_0,
)
def _join_gap(known: CounterInputs) -> Iterator[Sample]:
    """Records older than the watermark of their topic while it was idle. Joins may have missed
    them."""
    yield (), sum(h.join_gap for h in known.headers)


@series(
    "settled_moved_total",
    formula="settled feedback that joined another impression later",
    unit="events",
    empty=_AT_0,
)
def _settled_moved(known: CounterInputs) -> Iterator[Sample]:
    """Feedback whose segment changed after it was settled, because its request id came back for
    another slate. Windows follow the change, totals do not."""
    yield (), sum(h.settled_moved for h in known.headers)


@series("user_sample_ratio", formula="share of the users, by hash", unit="ratio", empty=_AT_0)
def _user_sample(known: CounterInputs) -> Iterator[Sample]:
    """Share of the users in metrics of users, in the partition with the smallest share; 1: all
    users."""
    yield (), 2.0 ** -max((h.sample_bits for h in known.headers), default=0)


@series(
    "item_sample_ratio",
    labels=("window",),
    formula="share of the items, by hash",
    unit="ratio",
    empty="absent where no family counts items",
)
def _item_sample(known: CounterInputs) -> Iterator[Sample]:
    """Share of the items in metrics of items; 1: all items."""
    for label, ratio in known.item_samples.items():
        yield (label,), ratio


@series(
    "users_behind_seconds",
    formula="stream time since the metrics of users were brought up to date",
    unit="seconds",
    empty=_AT_0,
)
def _users_behind(known: CounterInputs) -> Iterator[Sample]:
    """Delay of the metrics of users behind all others, in the slowest partition; 0: no delay."""
    yield (), max((h.users_behind_ms for h in known.headers), default=0) / 1000


@series(
    "counted_since_seconds",
    labels=("setting", "value"),
    formula="stream time from which on it is counted, in the partition that began last",
    unit="epoch seconds",
    empty="absent for what was counted since the state began",
)
def _counted_since(known: CounterInputs) -> Iterator[Sample]:
    """Start of the count of a dimension, window, kind of feedback or metric that was added to a
    running state. A window shows it once the whole window is after that time."""
    found: dict[tuple[str, str], int] = {}
    for named in (each for h in known.headers for each in h.began.named):
        key = (named.setting, named.value)
        found[key] = max(found.get(key, 0), named.since_ms)
    for key, since_ms in sorted(found.items()):
        yield key, since_ms / 1000


@series(
    "identity_exact",
    formula="1 if streamer_inexact has no cause for counts or joins, else 0",
    unit="0 or 1",
    empty=_AT_0,
)
def _identity(known: CounterInputs) -> Iterator[Sample]:
    """1 while counts and joins are exact: every record was read, none is counted twice, and no join
    was missed. Samples of users or items do not change it: see streamer_inexact."""
    yield (), int(not any(each.is_of_all for each in known.inexact))


@series(
    "inexact",
    labels=("metrics", "cause"),
    formula="1 for each cause for which some metrics are not exact",
    unit="1",
    empty="absent while all is exact",
)
def _inexact(known: CounterInputs) -> Iterator[Sample]:
    """1 if metrics are not exact, with the cause. `counts` and `joins` affect nearly all metrics;
    `users`, `items`, `sessions`, `dwell`, `experiments` and `alerts` only the metrics of that
    name."""
    for each in known.inexact:
        yield (each.metrics, each.cause), 1


@series(
    "stream_time_seconds",
    formula="largest min(ts, arrival clock)",
    unit="epoch seconds",
    empty="absent without accepted events",
)
def _stream_time(known: CounterInputs) -> Iterator[Sample]:
    """Stream time: the newest event, in epoch seconds."""
    if known.stream_ms:
        yield (), known.stream_ms / 1000


@series(
    "source_info",
    labels=("source", "topic", "cluster", "format"),
    formula="1 for each topic that is read",
    unit="1",
    empty="never absent",
)
def _sources(known: CounterInputs) -> Iterator[Sample]:
    """Source, cluster (`kafka`: that of `[kafka]`) and format of a topic. Join it with lag,
    lateness and clocks by `topic`."""
    for name, log in known.settings.logs.items():
        source = known.settings.read_sources[log.source]
        yield (source.called, name, log.cluster or MAIN, source.format), 1


FAMILY = Family("acceptance", tuple(series.series))
