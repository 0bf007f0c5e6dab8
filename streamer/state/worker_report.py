"""What a worker reports about itself through the store."""

from __future__ import annotations

import msgspec

from streamer.settings import limits

SUPERVISED = "STREAMER_SUPERVISED"
"""Set in the environment of a worker to the number of workers that share its container."""
SUPERVISOR = "STREAMER_SUPERVISOR"
"""Set in the environment of a worker to the process that started it, with which it ends."""
COMMIT_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the commit histogram; a last one is infinite."""


class WorkerReport(msgspec.Struct):
    """One worker's counters since it started, and its present state.

    ``process``: random, tells two workers of one name apart;
    ``read_to``: "kind/partition" → offset before which all is stored, of logs read to their ends;
    ``owned``: partition → phase; ``problems``: partition → why it waits;
    ``log_problems``: what keeps it from fetching records;
    ``store_problem``: why the store may lose what it is given;
    ``unread``: topic → why it is not read, or not all of it;
    ``silent_seconds``: the report's age when it was read; ``unreadable``: why it could not be.
    """

    worker: str
    owned: dict[int, str] = {}
    read_to: dict[str, int] = {}
    commits: int = 0
    commit_seconds_sum: float = 0.0
    commit_buckets: list[int] = msgspec.field(
        default_factory=lambda: [0] * (len(COMMIT_BUCKETS_SECONDS) + 1)
    )
    fenced: int = 0
    applied_records: int = 0
    problems: dict[int, str] = {}
    log_problems: list[str] = []
    store_problem: str = ""
    unread: dict[str, str] = {}
    silent_seconds: int = 0
    unreadable: str = ""
    process: str = ""
    commit_bytes: int = 0
    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    tables_used: dict[str, float] = {}
    """Table → rows of the fullest partition, by its bound in ``[limits]``."""

    @property
    def is_present(self) -> bool:
        """Whether the worker has reported lately."""
        return self.silent_seconds <= limits.WORKER_SILENT_SECONDS and not self.unreadable

    def commit_took(self, seconds: float, size: int = 0) -> None:
        """Count one commit; ``size``: its bytes."""
        self.commits += 1
        self.commit_bytes += size
        self.commit_seconds_sum += seconds
        for i, bound in enumerate(COMMIT_BUCKETS_SECONDS):
            if seconds <= bound:
                self.commit_buckets[i] += 1
                return
        self.commit_buckets[-1] += 1
