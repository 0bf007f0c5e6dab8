"""Whether what an exporter shows follows the logs: by what workers report and what is stored."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf

from streamer.formatting import partitions_in_words
from streamer.kafka.log_ends import LogEnds
from streamer.settings import limits
from streamer.state.manifest import Manifest
from streamer.state.reader import Reader
from streamer.state.worker_report import WorkerReport

_ENDS = 1000
"""Of a log's ends so many are remembered, with their times: four hours of scrapes."""
Lags = Mapping[tuple[str, int], int]
"""(log, partition) → records that wait."""


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
    problems += sorted({report.store_problem for report in present} - {""})
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
    warnings = (*unread_topics(present).values(), *_held_back(standstill, ends))
    return Health(tuple(problems), warnings)


def _held_back(standstill: Standstill, ends: LogEnds) -> list[str]:
    """Logs whose records wait behind a transaction that does not end."""
    return [
        f"topic {log}: {ends.unstable[log]:,} records have waited for {seconds:.0f} s behind an"
        " open transaction: its producer has to commit or abort it"
        for log, seconds in sorted(standstill.held_seconds.items())
        if seconds > limits.STANDSTILL_SECONDS
    ]


def unread_topics(present: list[WorkerReport]) -> dict[str, str]:
    """Topic → why it is not read, or not all of it, by the workers that are present."""
    found = {topic: why for report in present for topic, why in report.unread.items()}
    return dict(sorted(found.items()))


def lag_records(
    ends: LogEnds, stored: Mapping[int, Manifest], reports: Iterable[WorkerReport]
) -> Lags:
    """Offsets from the stored state up to the last stable offset of each log.

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
    for (log, partition), bounds in ends.bounds.items():
        manifest = stored.get(partition)
        topic = manifest.topics.get(log) if manifest else None
        read = max(bounds.start, topic.next_offset if topic else 0, passed.get((log, partition), 0))
        result[log, partition] = max(0, bounds.stable - read)
    return result


class LagAge:
    """How long the oldest record of each log that is not counted has waited: by when its offset was
    seen first, and at the exporter's start by when the last counted record arrived."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._looked, self._came = clock, inf, inf
        self._ends: dict[tuple[str, int], deque[tuple[float, int]]] = {}
        self.seconds: dict[str, float] = {}
        """Log → the longest of its partitions; 0 where none waits."""

    def doubt(self) -> None:
        """What the next look finds may have waited since the last one."""
        self._came = self._looked

    def look(self, now_ms: int, lags: Lags, ends: LogEnds, stored: Mapping[int, Manifest]) -> None:
        """Bring it up to date. Ages grow by a clock that nobody sets; ``now_ms``, by the store's,
        is compared with when records arrived."""
        self.seconds, now = {}, self._clock()
        came, self._came, self._looked = min(now, self._came), inf, now
        for place, records in lags.items():
            (log, partition), stable = place, ends.bounds[place].stable
            seen, seen_at = self._ends.get(place), came
            if seen is None:
                seen = self._ends[place] = deque()
                manifest = stored.get(partition)
                if manifest is not None and log in manifest.topics:
                    seen_at -= max(0, now_ms - manifest.topics[log].arrival_ms) / 1000
            while seen and seen[0][1] <= stable - records:
                seen.popleft()
            if records and (not seen or seen[-1][1] < stable):
                if len(seen) == _ENDS:
                    seen_at, _ = seen.pop()
                seen.append((seen_at, stable))
            waited = now - seen[0][0] if records else 0.0
            self.seconds[log] = max(waited, self.seconds.get(log, 0.0))


class Standstill:
    """Partitions whose records wait while nothing of them is committed, and logs whose transactions
    do not end."""

    def __init__(self) -> None:
        self._since_ms: dict[int, int] = {}
        self._held_since_ms: dict[tuple[str, int, int], int] = {}
        self.held_seconds: dict[str, float] = {}
        """Log → for how long the same transaction has held back records of it."""
        self.seconds: dict[int, float] = {}
        """Partition → how long its records have waited without a commit; 0 where none wait."""
        self.records: Lags = {}

    def look(self, now_ms: int, lags: Lags, committed_ms: Mapping[int, int], ends: LogEnds) -> None:
        """Bring it up to date; all times by the store's clock, in milliseconds."""
        self.records = lags
        held = {(log, n, at.stable) for (log, n), at in ends.bounds.items() if at.end > at.stable}
        self._held_since_ms = {place: self._held_since_ms.get(place, now_ms) for place in held}
        longest_last = sorted(self._held_since_ms.items(), key=lambda each: -each[1])
        self.held_seconds = {log: (now_ms - ms) / 1000 for (log, *_), ms in longest_last}
        waiting = {partition for (_, partition), records in lags.items() if records}
        self._since_ms = {n: self._since_ms.get(n, now_ms) for n in waiting}
        self.seconds = {partition: 0.0 for _, partition in lags} | {
            partition: max(0, now_ms - max(since, committed_ms.get(partition, 0))) / 1000
            for partition, since in self._since_ms.items()
        }
