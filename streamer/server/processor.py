"""The processor's own series: workers, the logs that they read, the state that they store."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from streamer import __version__
from streamer.metrics.definition import Family, Sample, SeriesDeclarations
from streamer.server.health import Health, Lags
from streamer.settings.model import Settings
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


series = SeriesDeclarations[Callable[[ProcessorInputs], Iterator[Sample]]]("total")
_WITHOUT_WORKERS = "absent without workers"
_AT_0 = "shown at 0"


@series(
    "partition_owner_info",
    labels=("partition", "worker", "phase"),
    formula="1 for each partition that a worker has",
    unit="1",
    empty=_WITHOUT_WORKERS,
)
def _owner(known: ProcessorInputs) -> Iterator[Sample]:
    """1 for the worker that owns the partition, with its phase."""
    for report in known.reports:
        for partition, phase in report.owned.items():
            yield (str(partition), report.worker, phase), 1


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


@series(
    "fenced_total",
    labels=("worker",),
    formula="commits refused",
    unit="commits",
    empty=_WITHOUT_WORKERS,
)
def _fenced(known: ProcessorInputs) -> Iterator[Sample]:
    """Commits refused because another worker owned the partition."""
    for report in known.reports:
        yield (report.worker,), report.fenced


@series("dead_letters_total", formula="records sent", unit="records", empty=_AT_0)
def _dead_letters(known: ProcessorInputs) -> Iterator[Sample]:
    """Records sent to the dead-letter topic."""
    yield (), sum(m.dead_letters for m in known.manifests.values())


@series("dead_letters_omitted_total", formula="records not sent", unit="records", empty=_AT_0)
def _omitted(known: ProcessorInputs) -> Iterator[Sample]:
    """Refused records that were counted by reason but not sent to the dead-letter topic, because a
    fetch held too many."""
    yield (), sum(m.dead_letters_omitted for m in known.manifests.values())


@series(
    "lost_records_total",
    labels=("topic",),
    formula="offsets that were passed over",
    unit="records",
    empty="absent for topics that were not read",
)
def _lost(known: ProcessorInputs) -> Iterator[Sample]:
    """Records that Kafka deleted before they were read, or whose batch cannot be read."""
    return known.by_topic(lambda topic: topic.lost)


@series(
    "log_restarts_total",
    labels=("topic",),
    formula="logs that did not continue the log that was read",
    unit="logs",
    empty="absent for topics that were not read",
)
def _restarts(known: ProcessorInputs) -> Iterator[Sample]:
    """Times a log was truncated, or its topic recreated, since it was read."""
    return known.by_topic(lambda topic: topic.restarts)


@series(
    "last_commit_timestamp_seconds",
    labels=("partition",),
    formula="time of the last commit",
    unit="epoch seconds",
    empty="absent before the first commit",
)
def _committed(known: ProcessorInputs) -> Iterator[Sample]:
    """Time of a partition's last commit, by the clock of Redis."""
    for partition, seen_ms in known.reader.committed_ms.items():
        yield (str(partition),), seen_ms / 1000


@series("ready", formula="1 if /readyz has no problem, else 0", unit="0 or 1", empty=_AT_0)
def _ready(known: ProcessorInputs) -> Iterator[Sample]:
    """1 if every partition has a worker and none waits (as /readyz)."""
    yield (), int(known.health.is_ready)


@series("workers", formula="workers with a recent report", unit="workers", empty=_AT_0)
def _workers(known: ProcessorInputs) -> Iterator[Sample]:
    """Workers that have reported recently."""
    yield (), len(known.reports)


@series("partitions", formula="partitions of the state", unit="partitions", empty=_AT_0)
def _partitions(known: ProcessorInputs) -> Iterator[Sample]:
    """Partitions of each topic, fixed when the state was created."""
    yield (), known.reader.count


@series(
    "consumer_lag_records",
    labels=("topic", "partition"),
    formula="last stable offset - offset of the stored state",
    unit="records",
    empty="absent while Kafka does not answer",
)
def _lag(known: ProcessorInputs) -> Iterator[Sample]:
    """Records up to the last stable offset of the log that are not in the stored state."""
    for (topic, partition), records in known.lags.items():
        yield (topic, str(partition)), records


@series(
    "unstable_records",
    labels=("topic",),
    formula="high watermark - last stable offset",
    unit="records",
    empty="absent while Kafka does not answer",
)
def _unstable(known: ProcessorInputs) -> Iterator[Sample]:
    """Records from the first of an open transaction on, of all partitions. They are not read until
    it ends, and are neither lag nor standstill."""
    for topic, records in known.unstable.items():
        yield (topic,), records


@series(
    "partition_standstill_seconds",
    labels=("partition",),
    formula="time since the last commit, while records wait",
    unit="seconds",
    empty="absent while Kafka does not answer",
)
def _standstill(known: ProcessorInputs) -> Iterator[Sample]:
    """Time that records of a partition have waited without a commit; 0 if none wait."""
    for partition, seconds in sorted(known.standstill_seconds.items()):
        yield (str(partition),), seconds


@series(
    "topic_keyed_by_user",
    labels=("topic",),
    formula="1 if keyed by user, else 0",
    unit="0 or 1",
    empty="absent for topics without a sampled user",
)
def _keyed(known: ProcessorInputs) -> Iterator[Sample]:
    """1 while every sampled user is on one partition number, the same as in the impressions. 0
    after an exception; metrics of users are then off."""
    for topic, is_by_user in known.reader.keyed.items():
        yield (topic,), int(is_by_user or known.settings.kafka.keyed_by == "user")


@series(
    "topic_unread",
    labels=("topic",),
    formula="1 if records are not read, else 0",
    unit="0 or 1",
    empty=_AT_0,
)
def _unread(known: ProcessorInputs) -> Iterator[Sample]:
    """1 while records of a topic are not read although they should count. /readyz gives the
    reason."""
    for topic in sorted({log.topic for log in known.settings.logs.values()} | known.unread.keys()):
        yield (topic,), int(topic in known.unread)


@series("readout_seconds", formula="time of the last readout", unit="seconds", empty=_AT_0)
def _readout(known: ProcessorInputs) -> Iterator[Sample]:
    """Time the last readout took."""
    yield (), known.readout_seconds


@series(
    "build_info",
    labels=("version", "python"),
    formula="1",
    unit="1",
    empty="never absent",
)
def _build(known: ProcessorInputs) -> Iterator[Sample]:
    """1, with the versions of streamer and of Python."""
    yield (__version__, platform.python_version()), 1


FAMILY = Family("processor", tuple(series.series))
