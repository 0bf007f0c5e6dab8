"""The processor's own metrics and its health, from what workers report and what is stored."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from streamer import __version__
from streamer.formatting import partitions_in_words
from streamer.kafka.log_ends import LogEnds
from streamer.metrics.catalogue import PREFIX
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.manifest import Manifest
from streamer.state.reader import Reader
from streamer.state.worker_report import COMMIT_BUCKETS_SECONDS, WorkerReport

_BOUNDS = [*map(str, COMMIT_BUCKETS_SECONDS), "+Inf"]


@dataclass(frozen=True)
class Health:
    """Whether what an exporter shows follows the logs, and what keeps it from that."""

    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is not read of the logs, while everything else is."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing keeps the readings from following the logs."""
        return not self.problems


def health(
    reader: Reader,
    reports: list[WorkerReport],
    standstill: Standstill,
    ends: LogEnds,
    fullness: str | None = None,
) -> Health:
    """Health by the workers' reports, the stored state and the logs; ``fullness``: of the store, in
    words, where it takes no more."""
    present = [report for report in reports if report.is_present]
    problems = [
        f"{report.worker}: partition {partition}: {problem}"
        for report in present
        for partition, problem in sorted(report.problems.items())
    ]
    problems += [
        f"{report.worker}: {problem}" for report in present for problem in report.log_problems
    ]
    problems += [
        f"the report of {report.worker} in Redis cannot be read: {report.unreadable}"
        for report in reports
        if report.unreadable
    ]
    owned = {n for report in present for n, phase in report.owned.items() if phase == "owned"}
    problems += [
        f"{report.worker}: silent for {report.silent_seconds} s"
        for report in reports
        if report.silent_seconds and not report.is_present and not owned.issuperset(report.owned)
    ]
    if present and not reader.count:
        problems.append("workers are running, but nothing is stored yet")
    if not present and not reader.count and (records := sum(standstill.records.values())):
        problems.append(
            f"nothing is counted yet, and {records:,} records wait: no worker is running; start "
            "`streamer run`, and look at what it prints"
        )
    needed = set(range(reader.count)) if reports else reader.claimed
    if unowned := sorted(needed - owned):  # who ended on purpose has given back what it had
        problems.append(f"{partitions_in_words(unowned)} of {reader.count}: no worker owns it")
    if behind := reader.behind:
        what = (
            "Redis holds an older state than the one shown (restored, or counted again after "
            "damage): the last whole copy is shown until workers have caught up"
        )
        problems.append(f"{partitions_in_words(behind)}: {what}")
    problems += [
        f"partition {partition}: records have waited for {seconds:.0f} s without a commit"
        for partition, seconds in sorted(standstill.seconds.items())
        if seconds > limits.STANDSTILL_SECONDS
    ]
    problems += [] if fullness is None else [fullness]
    problems += [
        f"partition {partition}: {damage}; the last state read is shown"
        for partition, damage in sorted(reader.damaged.items())
    ]
    if ends.problem is not None:
        problems.append(f"the lag is unknown: Kafka: {ends.problem}")
    return Health(tuple(problems), tuple(unread_topics(reports).values()))


def unread_topics(reports: list[WorkerReport]) -> dict[str, str]:
    """Topic → why it is not read, or not all of it, by the workers that are present."""
    present = [report for report in reports if report.is_present]
    found = {topic: why for report in present for topic, why in report.unread.items()}
    return dict(sorted(found.items()))


def unread_metric(settings: Settings, unread: Mapping[str, str]) -> Metric:
    """Which topics are not read."""
    found = GaugeMetricFamily(
        f"{PREFIX}topic_unread",
        "1 while records of a topic that should count are not read; /readyz says why.",
        labels=["topic"],
    )
    for topic in sorted({log.topic for log in settings.logs.values()} | unread.keys()):
        found.add_metric([topic], topic in unread)
    return found


def processor_metrics(reader: Reader, reports: list[WorkerReport], now: Health) -> Iterator[Metric]:
    """Metrics of the workers, of the logs and of the stored state."""
    present = [report for report in reports if report.is_present]
    yield from _workers(present)
    yield from _logs(reader.manifests)
    yield from _state(reader, len(present), now)


def keyed_metric(settings: Settings, keyed: Mapping[str, bool]) -> Metric:
    """How the topics are keyed, as far as that was looked at."""
    metric = GaugeMetricFamily(
        f"{PREFIX}topic_keyed_by_user",
        "1 while every sampled user is on one partition number, the same as in the impressions; 0 "
        "once one was not: metrics of users are off then.",
        labels=["topic"],
    )
    for kind, is_by_user in keyed.items():
        metric.add_metric([kind], is_by_user or settings.kafka.keyed_by == "user")
    return metric


def build_info() -> Metric:
    """Which version runs, on which Python."""
    labels = {"version": __version__, "python": platform.python_version()}
    text = "1, with the versions of streamer and of Python."
    return InfoMetricFamily(f"{PREFIX}build", text, value=labels)


def log_metrics(lags: Mapping[tuple[str, int], int], standstill: Standstill) -> Iterator[Metric]:
    """How far the stored state is behind the logs; nothing where that is not known."""
    lag = GaugeMetricFamily(
        f"{PREFIX}consumer_lag_records",
        "Records up to the last stable offset of the log that are not in the stored state.",
        labels=["topic", "partition"],
    )
    for (kind, partition), records in lags.items():
        lag.add_metric([kind, str(partition)], records)
    still = GaugeMetricFamily(
        f"{PREFIX}partition_standstill_seconds",
        "How long records of a partition have waited without a commit; 0 where none wait.",
        labels=["partition"],
    )
    for partition, seconds in sorted(standstill.seconds.items()):
        still.add_metric([str(partition)], seconds)
    yield from (lag, still)


def _workers(reports: list[WorkerReport]) -> Iterator[Metric]:
    owner = GaugeMetricFamily(
        f"{PREFIX}partition_owner_info",
        "1 for the worker that has the partition, with its phase.",
        labels=["partition", "worker", "phase"],
    )
    seconds = HistogramMetricFamily(
        f"{PREFIX}commit_seconds", "Time of one commit to the store.", labels=["worker"]
    )
    fenced = CounterMetricFamily(
        f"{PREFIX}fenced",
        "Commits refused because another worker owned the partition.",
        labels=["worker"],
    )
    for report in reports:
        for partition, phase in report.owned.items():
            owner.add_metric([str(partition), report.worker, phase], 1)
        running = 0
        buckets = []
        for bound, count in zip(_BOUNDS, report.commit_buckets, strict=True):
            running += count
            buckets.append((bound, float(running)))
        seconds.add_metric([report.worker], buckets, report.commit_seconds_sum)
        fenced.add_metric([report.worker], report.fenced)
    yield from (owner, seconds, fenced)


def _logs(manifests: dict[int, Manifest]) -> Iterator[Metric]:
    dead = CounterMetricFamily(f"{PREFIX}dead_letters", "Records sent to the dead-letter topic.")
    dead.add_metric([], sum(m.dead_letters for m in manifests.values()))
    omitted = CounterMetricFamily(
        f"{PREFIX}dead_letters_omitted",
        "Refused records that were counted by reason and not sent to the dead-letter topic: a "
        "fetch held so many in so few bytes.",
    )
    omitted.add_metric([], sum(m.dead_letters_omitted for m in manifests.values()))
    lost = CounterMetricFamily(
        f"{PREFIX}lost_records",
        "Records that left the log before they were read, or whose batch cannot be read.",
        labels=["topic"],
    )
    restarts = CounterMetricFamily(
        f"{PREFIX}log_restarts",
        "Times a log was truncated, or its topic recreated, since it was read.",
        labels=["topic"],
    )
    topics = {name for m in manifests.values() for name in m.topics}
    for name in sorted(topics):
        positions = [m.topics[name] for m in manifests.values() if name in m.topics]
        lost.add_metric([name], sum(topic.lost for topic in positions))
        restarts.add_metric([name], sum(topic.restarts for topic in positions))
    yield from (dead, omitted, lost, restarts)


def _state(reader: Reader, workers: int, now: Health) -> Iterator[Metric]:
    committed = GaugeMetricFamily(
        f"{PREFIX}last_commit_timestamp_seconds",
        "Time of a partition's last commit, by the clock of Redis.",
        labels=["partition"],
    )
    for partition, seen_ms in reader.committed_ms.items():
        committed.add_metric([str(partition)], seen_ms / 1000)
    yield committed
    for name, doc, value in (
        (
            "ready",
            "1 when every partition has a worker and none waits (as /readyz).",
            now.is_ready,
        ),
        ("workers", "Workers that have reported recently.", workers),
        ("partitions", "Partitions of each topic, fixed when the state was created.", reader.count),
    ):
        yield GaugeMetricFamily(PREFIX + name, doc, value=float(value))


def lag_records(
    ends: LogEnds, stored: Mapping[int, Manifest], reports: Iterable[WorkerReport]
) -> dict[tuple[str, int], int]:
    """(log, partition) → offsets from the stored state up to the log's last stable offset.

    By what is stored, so that it is right when no worker lives. Offsets that are no records
    (markers of transactions) are left out where a worker has read past them.
    """
    passed: dict[tuple[str, int], int] = {}
    for report in reports:
        for key, offset in report.read_to.items():
            log, _, digits = key.rpartition("/")
            log_partition = log, int(digits)
            passed[log_partition] = max(offset, passed.get(log_partition, 0))
    result = {}
    for (log, partition), (start, end) in ends.bounds.items():
        manifest = stored.get(partition)
        topic = manifest.topics.get(log) if manifest else None
        read = max(start, topic.next_offset if topic else 0, passed.get((log, partition), 0))
        result[log, partition] = max(0, end - read)
    return result


class Standstill:
    """Partitions whose records wait while nothing of them is committed."""

    def __init__(self) -> None:
        self._since_ms: dict[int, int] = {}
        self.seconds: dict[int, float] = {}
        """Partition → how long its records have waited without a commit; 0 where none wait."""
        self.records: Mapping[tuple[str, int], int] = {}
        """(log, partition) → how many wait."""

    def look(
        self, now_ms: int, lags: Mapping[tuple[str, int], int], committed_ms: Mapping[int, int]
    ) -> None:
        """Bring ``seconds`` up to date; all times by the store's clock, in milliseconds."""
        self.records = lags
        waiting = {partition for (_, partition), records in lags.items() if records}
        self._since_ms = {n: self._since_ms.get(n, now_ms) for n in waiting}
        self.seconds = {partition: 0.0 for _, partition in lags} | {
            partition: max(0, now_ms - max(since, committed_ms.get(partition, 0))) / 1000
            for partition, since in self._since_ms.items()
        }
