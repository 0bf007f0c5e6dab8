"""How far the stored state is behind the logs, and since when nothing happens about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamer.kafka.log_ends import LogEnds
from streamer.state.manifest import Manifest
from streamer.state.worker_report import WorkerReport


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
            log, _, text = key.rpartition("/")
            place = log, int(text)
            passed[place] = max(offset, passed.get(place, 0))
    result = {}
    for (log, number), (start, end) in ends.bounds.items():
        manifest = stored.get(number)
        topic = manifest.topics.get(log) if manifest else None
        read = max(start, topic.next_offset if topic else 0, passed.get((log, number), 0))
        result[log, number] = max(0, end - read)
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
        waiting = {number for (_, number), records in lags.items() if records}
        self._since_ms = {n: self._since_ms.get(n, now_ms) for n in waiting}
        self.seconds = {number: 0.0 for _, number in lags} | {
            number: max(0, now_ms - max(since, committed_ms.get(number, 0))) / 1000
            for number, since in self._since_ms.items()
        }
