"""All contestants."""

from __future__ import annotations

from benchmarks.peers.contestant import Contestant, not_done, python

CONTESTANTS: tuple[Contestant, ...] = (
    Contestant(
        "aiokafka and msgspec",
        python("floor", "python_floor", "aiokafka==0.14.0", "msgspec==0.22.0", "redis==8.1.0"),
        "all counting: it only fetches and decodes",
        wrong=not_done,
    ),
)
