"""The processor's own series: workers, the logs that they read, the state that they store."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from streamer import __version__
from streamer.metrics.definition import Family, Sample, SeriesDeclarations, one
from streamer.server.health import Health, Lags
from streamer.settings.model import Settings
from streamer.state.acted import Told
from streamer.state.manifest import Manifest
from streamer.state.reader import Reader
from streamer.state.topics import TopicState
from streamer.state.worker_report import COMMIT_BUCKETS_SECONDS, WorkerReport

_BOUNDS = [*map(str, COMMIT_BUCKETS_SECONDS), "+Inf"]


@dataclass(frozen=True)
class ProcessorInputs:
    """What is known of the processor at a scrape."""

    settings: Settings
    reader: Reader
    reports: Sequence[WorkerReport]
    """Of the workers that are present."""
    health: Health
    lags: Lags = field(default_factory=dict)
    unstable: Mapping[str, int] = field(default_factory=dict)
    """Log → records that open transactions hold back."""
    standstill_seconds: Mapping[int, float] = field(default_factory=dict)
    """Partition → how long its records have waited without a commit."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Topic → why it is not read."""
    readout_seconds: float = 0.0
    lag_seconds: Mapping[str, float] = field(default_factory=dict)
    """Log → how long its oldest record that is not counted has waited."""

    @property
    def manifests(self) -> Mapping[int, Manifest]:
        """Partition → what is stored of it."""
        return self.reader.manifests

    def by_topic(self, of: Callable[[TopicState], int]) -> Iterator[Sample]:
        """The sum over partitions, for each topic that was read."""
        topics = {name for m in self.manifests.values() for name in m.topics}
        for name in sorted(topics):
            stored = (m.topics[name] for m in self.manifests.values() if name in m.topics)
            yield (name,), sum(map(of, stored))


series = SeriesDeclarations[Callable[[ProcessorInputs], Iterator[Sample]]]("total", "shown at 0")
_WITHOUT_WORKERS = "absent without workers"
_WITHOUT_KAFKA = "absent while Kafka does not answer"
_UNREAD = "absent for topics that were not read"


series.row(
    *("partition_owner_info", "1", "1 for each partition that a worker has"),
    "1 for the worker that owns the partition, with its phase.",
    lambda known: (
        ((str(partition), report.worker, phase), 1)
        for report in known.reports
        for partition, phase in report.owned.items()
    ),
    labels=("partition", "worker", "phase"),
    empty=_WITHOUT_WORKERS,
)


@series(
    "commit_seconds",
    labels=("worker", "le"),
    kind="histogram",
    formula="commits by time",
    unit="seconds",
    empty=_WITHOUT_WORKERS,
)
def _commits(known: ProcessorInputs) -> Iterator[Sample]:
    """Time of one commit to the store."""
    for report in known.reports:
        upto = list(accumulate(report.commit_buckets))
        for bound, commits in zip(_BOUNDS, upto, strict=True):
            yield (report.worker, bound), commits, "_bucket"  # the text format wants these first
        yield (report.worker,), upto[-1], "_count"
        yield (report.worker,), report.commit_seconds_sum, "_sum"


series.row(
    *("commit_bytes_total", "bytes", "bytes of blobs and manifests"),
    "Bytes that commits have written to the store.",
    lambda known: (((report.worker,), report.commit_bytes) for report in known.reports),
    labels=("worker",),
    empty=_WITHOUT_WORKERS,
)
series.row(
    *("worker_memory_bytes", "bytes", "resident memory"),
    "Memory that a worker takes.",
    lambda known: (((report.worker,), report.memory_bytes) for report in known.reports),
    labels=("worker",),
    empty=_WITHOUT_WORKERS,
)
series.row(
    *("worker_memory_limit_bytes", "bytes", "limits.worker_memory_mb"),
    "Memory beyond which the oldest rows of a worker leave early; by default 85 % of what its"
    " container has.",
    lambda known: (
        ((report.worker,), report.memory_limit_bytes)
        for report in known.reports
        if report.memory_limit_bytes
    ),
    labels=("worker",),
    empty="absent where no limit is known",
)
series.row(
    *("table_used_ratio", "ratio", "rows of the fullest partition / the bound in [limits]"),
    "How full the tables of a worker are: at 1 the oldest rows leave early, and metrics are not"
    " exact any more.",
    lambda known: (
        ((report.worker, table), used)
        for report in known.reports
        for table, used in report.tables_used.items()
    ),
    labels=("worker", "table"),
    empty=_WITHOUT_WORKERS,
)
series.row(
    *("action_deliveries", "deliveries", "deliveries of records of actions, by state"),
    "What became of what `streamer act` had to tell: pending, delivered, failed or dry run.",
    lambda known: (
        ((state,), sum(each.state is state for each in known.reader.acted.deliveries.values()))
        for state in (Told if known.settings.actions else ())
    ),
    labels=("state",),
    empty="absent without [[actions]]",
)
series.row(
    *("acted_total", "records", "records of actions"),
    "What was acted on, by experiment and occasion.",
    lambda known: iter(
        Counter((r.experiment, r.kind) for r in known.reader.acted.records.values()).items()
    ),
    labels=("experiment", "occasion"),
    empty="absent for an experiment of which nothing was told",
)
series.row(
    *("fenced_total", "commits", "commits refused"),
    "Commits refused because another worker owned the partition.",
    lambda known: (((report.worker,), report.fenced) for report in known.reports),
    labels=("worker",),
    empty=_WITHOUT_WORKERS,
)
series.row(
    *("dead_letters_total", "records", "records sent"),
    "Records sent to the dead-letter topic.",
    lambda known: one(sum(stored.dead_letters for stored in known.manifests.values())),
)
series.row(
    *("dead_letters_omitted_total", "records", "records not sent"),
    "Refused records that were counted by reason but not sent to the dead-letter topic, because a"
    " fetch held too many.",
    lambda known: one(sum(stored.dead_letters_omitted for stored in known.manifests.values())),
)
series.row(
    *("lost_records_total", "records", "offsets that were passed over"),
    "Records that Kafka deleted before they were read, or whose batch cannot be read.",
    lambda known: known.by_topic(lambda topic: topic.lost),
    labels=("topic",),
    empty=_UNREAD,
)
series.row(
    *("log_restarts_total", "logs", "logs that did not continue the log that was read"),
    "Times a log was truncated, or its topic recreated, since it was read.",
    lambda known: known.by_topic(lambda topic: topic.restarts),
    labels=("topic",),
    empty=_UNREAD,
)
series.row(
    *("last_commit_timestamp_seconds", "epoch seconds", "time of the last commit"),
    "Time of a partition's last commit, by the clock of Redis.",
    lambda known: (((str(i),), ms / 1000) for i, ms in known.reader.committed_ms.items()),
    labels=("partition",),
    empty="absent before the first commit",
)
series.row(
    *("ready", "0 or 1", "1 if /readyz has no problem, else 0"),
    "1 if every partition has a worker and none waits (as /readyz).",
    lambda known: one(int(known.health.is_ready)),
)
series.row(
    *("workers", "workers", "workers with a recent report"),
    "Workers that have reported recently.",
    lambda known: one(len(known.reports)),
)
series.row(
    *("partitions", "partitions", "partitions of the state"),
    "Partitions of each topic, fixed when the state was created.",
    lambda known: one(known.reader.count),
)
series.row(
    *("consumer_lag_records", "records", "last stable offset - offset of the stored state"),
    "Records up to the last stable offset of the log that are not in the stored state.",
    lambda known: (((topic, str(i)), records) for (topic, i), records in known.lags.items()),
    labels=("topic", "partition"),
    empty=_WITHOUT_KAFKA,
)
series.row(
    *("consumer_lag_seconds", "seconds", "time since the oldest record that waits was there"),
    "How long the oldest record of a topic that is not in the stored state has waited; 0 if none"
    " waits. Seen by the exporter, so to a scrape.",
    lambda known: (((topic,), seconds) for topic, seconds in known.lag_seconds.items()),
    labels=("topic",),
    empty=_WITHOUT_KAFKA,
)
series.row(
    *("unstable_records", "records", "high watermark - last stable offset"),
    "Records from the first of an open transaction on, of all partitions. They are not read until"
    " it ends, and are neither lag nor standstill.",
    lambda known: (((topic,), records) for topic, records in known.unstable.items()),
    labels=("topic",),
    empty=_WITHOUT_KAFKA,
)
series.row(
    "partition_standstill_seconds",
    *("seconds", "time since the last commit, while records wait"),
    "Time that records of a partition have waited without a commit; 0 if none wait.",
    lambda known: (((str(i),), time) for i, time in sorted(known.standstill_seconds.items())),
    labels=("partition",),
    empty=_WITHOUT_KAFKA,
)
series.row(
    *("topic_keyed_by_user", "0 or 1", "1 if keyed by user, else 0"),
    "1 while every sampled user is on one partition number, the same as in the impressions. 0"
    " after an exception; metrics of users are then off.",
    lambda known: (
        ((topic,), int(is_by_user or known.settings.kafka.keyed_by == "user"))
        for topic, is_by_user in known.reader.keyed.items()
    ),
    labels=("topic",),
    empty="absent for topics without a sampled user",
)


@series(
    "topic_unread",
    labels=("topic",),
    formula="1 if records are not read, else 0",
    unit="0 or 1",
)
def _unread(known: ProcessorInputs) -> Iterator[Sample]:
    """1 while records of a topic are not read although they should count. /readyz gives the
    reason."""
    for topic in sorted({log.topic for log in known.settings.logs.values()} | known.unread.keys()):
        yield (topic,), int(topic in known.unread)


series.row(
    *("readout_seconds", "seconds", "time of the last readout"),
    "Time the last readout took.",
    lambda known: one(known.readout_seconds),
)
series.row(
    *("info", "1", "1"),
    "1, with the prefix of Redis that is read.",
    lambda known: iter([((known.settings.redis.prefix,), 1)]),
    labels=("prefix",),
    empty="never absent",
)
series.row(
    *("build_info", "1", "1"),
    "1, with the versions of streamer and of Python.",
    lambda known: iter([((__version__, platform.python_version()), 1)]),
    labels=("version", "python"),
    empty="never absent",
)

FAMILY = Family("processor", tuple(series.series))
