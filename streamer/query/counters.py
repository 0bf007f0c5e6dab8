"""What is counted beside the families: acceptance, joins, bounds, stream time.

Declared as the metrics are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby

from streamer.metrics.definition import Family, Sample, SeriesDeclarations, one
from streamer.metrics.rollups import key_of
from streamer.query.checks import AlertVerdict
from streamer.query.exactness import Inexact
from streamer.query.experiments import JudgedExperiment
from streamer.settings.clusters import MAIN
from streamer.settings.model import Settings
from streamer.state.counters import OF_LOG, OF_PARTITION, CounterRow, added
from streamer.state.snapshot import Header
from streamer.state.topics import TopicState


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


SOURCE_LABELS = ("source", "topic", "cluster", "format")
Samples = Callable[[CounterInputs], Iterator[Sample]]
_AT_0 = "shown at 0"
series = SeriesDeclarations[Samples]("total", _AT_0)


@series(
    "events_total",
    labels=("topic",),
    formula="accepted + duplicates + late + rejected + ignored",
    unit="records",
)
def _events(known: CounterInputs) -> Iterator[Sample]:
    """Records seen: accepted, duplicates, late, rejected and ignored."""

    def seen(topic: TopicState) -> int:
        counted = (topic.counters[name] for name in ("accepted", "duplicates", "late", "ignored"))
        return sum(counted) + sum(topic.rejected.values())

    for name in known.settings.logs:
        yield (name,), sum(map(seen, known.topics(name)))


def _samples(rows: Sequence[CounterRow], known: CounterInputs) -> Iterator[Sample]:
    """Of each counter the partitions together, or those of each log."""
    for row in rows:
        if row in OF_LOG:
            for log in known.settings.logs:
                yield (log,), added(row.name, (topic.counters for topic in known.topics(log)))
        else:
            labels = (row.label,) if row.label else ()
            yield labels, added(row.name, (header.counters for header in known.headers))


def _declare(counters: Sequence[CounterRow]) -> None:
    """The series of counters of the core, but of those that are hidden."""
    shown = (row for row in counters if row.kind != "hidden")
    for name, group in groupby(shown, lambda row: row.series):
        rows = list(group)
        series.row(
            *(name, rows[0].unit, rows[0].formula, rows[0].about, partial(_samples, rows)),
            labels=("topic",) if rows[0] in OF_LOG or rows[0].label else (),
        )


_declare(OF_LOG)


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


_declare(OF_PARTITION)


series.row(
    "label_values_capped_total",
    *("events", "accepted events with a value that its partition does not keep"),
    "Accepted events counted as `other`, because their value is beyond `max_values` of the"
    " dimension.",
    lambda known: (
        ((name,), sum(header.capped[i] for header in known.headers))
        for i, name in enumerate(known.settings.dimension_names)
    ),
    labels=("dimension",),
)


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


series.row(
    *("user_sample_ratio", "ratio", "share of the users, by hash"),
    "Share of the users in metrics of users, in the partition with the smallest share; 1: all"
    " users.",
    lambda known: one(2.0 ** -added("sample_bits", (header.counters for header in known.headers))),
)
series.row(
    *("item_sample_ratio", "ratio", "share of the items, by hash"),
    "Share of the items in metrics of items; 1: all items.",
    lambda known: (((window,), ratio) for window, ratio in known.item_samples.items()),
    labels=("window",),
    empty="absent where no family counts items",
)
series.row(
    "users_behind_seconds",
    *("seconds", "stream time since the metrics of users were brought up to date"),
    "Delay of the metrics of users behind all others, in the slowest partition; 0: no delay.",
    lambda known: one(max((h.users_behind_ms for h in known.headers), default=0) / 1000),
)


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


def _sources(known: CounterInputs) -> Iterator[Sample]:
    for name, log in known.settings.logs.items():
        source = known.settings.read_sources[log.source]
        yield (source.called, name, log.cluster or MAIN, source.format), 1


series.row(
    *("identity_exact", "0 or 1", "1 if streamer_inexact has no cause for counts or joins, else 0"),
    "1 while counts and joins are exact: every record was read, none is counted twice, and no join"
    " was missed. Samples of users or items do not change it: see streamer_inexact.",
    lambda known: one(int(not any(each.is_of_all for each in known.inexact))),
)
series.row(
    *("inexact", "1", "1 for each cause for which some metrics are not exact"),
    "1 if metrics are not exact, with the cause. `counts` and `joins` affect nearly all metrics;"
    " `users`, `items`, `sessions`, `dwell`, `experiments` and `alerts` only the metrics of that"
    " name.",
    lambda known: (((each.metrics, each.cause), 1) for each in known.inexact),
    labels=("metrics", "cause"),
    empty="absent while all is exact",
)
series.row(
    *("stream_time_seconds", "epoch seconds", "largest min(ts, arrival clock)"),
    "Stream time: the newest event, in epoch seconds.",
    lambda known: one(known.stream_ms / 1000) if known.stream_ms else iter(()),
    empty="absent without accepted events",
)
series.row(
    *("source_info", "1", "1 for each topic that is read"),
    "Source, cluster (`kafka`: that of `[kafka]`) and format of a topic. Join it with lag, lateness"
    " and clocks by `topic`.",
    _sources,
    labels=SOURCE_LABELS,
    empty="never absent",
)

FAMILY = Family("acceptance", tuple(series.series))
