"""All contestants."""

from __future__ import annotations

from benchmarks.peers import builds
from benchmarks.peers.contestant import Contestant, not_done, python

CONTESTANTS: tuple[Contestant, ...] = (
    Contestant(
        "aiokafka and msgspec",
        python("floor", "python_floor", "aiokafka==0.14.0", "msgspec==0.22.0", "redis==8.1.0"),
        "all counting: it only fetches and decodes",
        wrong=not_done,
    ),
    Contestant(
        "rdkafka and typed decoding",
        builds.rust("rust_floor"),
        "all counting: it only fetches and decodes",
        sizes=(250_000, 2_500_000),
        wrong=not_done,
    ),
    Contestant(
        "Kafka Streams, hopping",
        builds.java("KafkaStreamsHopping"),
        "duplicates are counted, and a restart counts again what was not committed",
    ),
    Contestant(
        "Kafka Streams, panes",
        builds.java("KafkaStreamsPanes"),
        "duplicates are counted, and a restart loses what was merged",
    ),
    Contestant(
        "Flink SQL",
        builds.java("FlinkSql"),
        "late clicks are not in windows that have closed, duplicates are counted, and a restart "
        "reads all anew",
        sizes=(250_000, 2_500_000),
    ),
    Contestant(
        "Flink DataStream, interval join",
        builds.java("FlinkJoin"),
        "clicks later than five seconds are dropped, duplicates are counted, and a restart reads "
        "all anew",
    ),
)
