"""All contestants."""

from __future__ import annotations

from benchmarks.peers.contestant import Contestant, not_done, own, python, wrong_totals

EXACT = "nothing: late clicks, duplicates and restarts are counted exactly"
CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("streamer, this job", own("streamer_worker", "--only"), EXACT, wrong=wrong_totals),
    Contestant("streamer, default", own("streamer_worker"), EXACT, wrong=wrong_totals),
    Contestant(
        "aiokafka and msgspec",
        python("floor", "python_floor", "aiokafka==0.14.0", "msgspec==0.22.0", "redis==8.1.0"),
        "all counting: it only fetches and decodes",
        wrong=not_done,
    ),
)
