"""The processor's own metrics and its health, from what workers report and what is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from streamer.metrics.catalogue import PREFIX
from streamer.store.manifest import Manifest
from streamer.store.reader import Reader
from streamer.telemetry import COMMIT_BUCKETS_SECONDS, Telemetry
from streamer.words import partitions_in_words

_BOUNDS = [*map(str, COMMIT_BUCKETS_SECONDS), "+Inf"]


@dataclass(frozen=True)
class Health:
    """Whether what an exporter shows follows the logs, and what keeps it from that."""

    problems: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        return not self.problems


def health(reader: Reader, reports: list[Telemetry]) -> Health:
    """Health by the workers' reports and the stored state."""
    present = [report for report in reports if report.is_present]
    problems = [
        f"{report.worker}: partition {number}: {text}"
        for report in present
        for number, text in sorted(report.problems.items())
    ]
    owned = {n for report in present for n, phase in report.owned.items() if phase == "owned"}
    problems += [
        f"{report.worker}: has been silent for {report.silent_seconds} s"
        for report in reports
        if not report.is_present and not owned.issuperset(report.owned)
    ]
    if present and not reader.count:
        problems.append("workers are there, but nothing is stored")
    needed = set(range(reader.count)) if reports else reader.claimed
    if unowned := sorted(needed - owned):  # who ended on purpose has given back what it had
        problems.append(f"{partitions_in_words(unowned)} of {reader.count}: no worker has it")
    if behind := reader.behind:
        what = "the store holds an older state than is shown, until it has read as far"
        problems.append(f"{partitions_in_words(behind)}: {what}")
    return Health(tuple(problems))


def processor_metrics(reader: Reader, reports: list[Telemetry], now: Health) -> Iterator[Metric]:
    """Metrics of the workers, of the logs and of the stored state."""
    present = [report for report in reports if report.is_present]
    yield from _workers(present)
    yield from _logs(reader.manifests)
    yield from _state(reader, len(present), now)


def _workers(reports: list[Telemetry]) -> Iterator[Metric]:
    lag = GaugeMetricFamily(
        f"{PREFIX}consumer_lag_records",
        "Records up to the last stable offset that no worker was handed yet.",
        labels=["topic", "partition"],
    )
    owner = GaugeMetricFamily(
        f"{PREFIX}partition_owner_info",
        "1 for the worker that has the partition, with its phase.",
        labels=["partition", "worker", "phase"],
    )
    seconds = HistogramMetricFamily(
        f"{PREFIX}commit_seconds", "Time of one commit to the store.", labels=["worker"]
    )
    fenced = CounterMetricFamily(
        f"{PREFIX}fenced", "Commits refused because the partition was not ours.", labels=["worker"]
    )
    for report in reports:
        for key, value in report.lag_records.items():
            lag.add_metric(key.split("/"), value)
        for number, phase in report.owned.items():
            owner.add_metric([str(number), report.worker, phase], 1)
        running = 0
        buckets = []
        for bound, count in zip(_BOUNDS, report.commit_buckets, strict=True):
            running += count
            buckets.append((bound, float(running)))
        seconds.add_metric([report.worker], buckets, report.commit_seconds_sum)
        fenced.add_metric([report.worker], report.fenced)
    yield from (lag, owner, seconds, fenced)


def _logs(manifests: dict[int, Manifest]) -> Iterator[Metric]:
    dead = CounterMetricFamily(f"{PREFIX}dead_letters", "Records sent to the dead-letter topic.")
    dead.add_metric([], sum(m.dead_letters for m in manifests.values()))
    lost = CounterMetricFamily(
        f"{PREFIX}lost_records",
        "Records that left the log before they were read.",
        labels=["topic"],
    )
    restarts = CounterMetricFamily(
        f"{PREFIX}log_restarts",
        "Times a log was not the one that had been read: cut, or the topic made anew.",
        labels=["topic"],
    )
    topics = {kind for m in manifests.values() for kind in m.topics}
    for kind in sorted(topics):
        lost.add_metric([kind], sum(m.topics[kind].lost for m in manifests.values()))
        restarts.add_metric([kind], sum(m.topics[kind].restarts for m in manifests.values()))
    yield from (dead, lost, restarts)


def _state(reader: Reader, workers: int, now: Health) -> Iterator[Metric]:
    committed = GaugeMetricFamily(
        f"{PREFIX}last_commit_timestamp_seconds",
        "When a partition was committed last, by the store's clock.",
        labels=["partition"],
    )
    for number, seen_ms in reader.committed_ms.items():
        committed.add_metric([str(number)], seen_ms / 1000)
    yield committed
    for name, text, value in (
        (
            "ready",
            "1 when every partition has a worker and none waits (as /readyz).",
            now.is_ready,
        ),
        ("workers", "Workers that have reported lately.", workers),
        ("partitions", "Partitions of each topic, as the state began.", reader.count),
    ):
        yield GaugeMetricFamily(PREFIX + name, text, value=float(value))
