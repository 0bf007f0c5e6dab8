"""One topic of a partition: where its log stands, and what was counted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from streamer.kafka.fingerprints import Fingerprint
from streamer.state.partition import TopicLog


class TopicState(msgspec.Struct):
    """As it is stored and as readers see it.

    ``cluster_id``: Kafka's own id of its cluster, "" where that is unknown; ``topic``: its name
    there; ``rank``: its place among topics with events of one kind; ``counters``: by name
    (``state.counters``); ``rejected``: by reason; ``gaps``: the last ranges of lost offsets.
    """

    cluster_id: str
    topic: str
    rank: int
    first_offset: int
    next_offset: int
    arrival_ms: int
    idle_ms: int
    counters: dict[str, int]
    rejected: dict[str, int]
    lost: int
    gaps: list[tuple[int, int]]
    restarts: int
    fingerprints: list[Fingerprint]

    @classmethod
    def of(
        cls, log: TopicLog, counted: Mapping[str, Any], fingerprints: Sequence[Fingerprint] = ()
    ) -> TopicState:
        """A topic in memory; ``counted``: what the core says of it."""
        return cls(
            **counted,
            **{name: getattr(log, name) for name in (*IDENTITY, *OF_LOG)},
            fingerprints=list(fingerprints),
        )

    def restore(self, log: TopicLog) -> None:
        """Let a log in memory stand there; its core is restored with all topics at once."""
        for name in OF_LOG:
            setattr(log, name, getattr(self, name))
        log.cluster_id = log.cluster_id or self.cluster_id
        log.is_new = False


IDENTITY = ("cluster_id", "topic")
"""What tells logs apart."""
OF_LOG = ("rank", "first_offset", "lost", "gaps", "restarts")
"""What Python counts; everything else is the core's."""
