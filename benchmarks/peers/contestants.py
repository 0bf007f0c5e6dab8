"""All contestants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.peers import builds
from benchmarks.peers.contestant import Contestant, not_done, own, python, wrong_totals

EXACT = "nothing: late clicks, duplicates and restarts are counted exactly"
SLOW, MEDIUM, FAIR = (5_000, 25_000), (25_000, 125_000), (50_000, 250_000)
QUIX = python("quix", "quix", "quixstreams==3.28.1", "redis==8.1.0")
BYTEWAX = python(
    "bytewax", "bytewax_flow", "bytewax==0.21.1", "confluent-kafka==2.16.1", "redis==8.1.0"
)
PATHWAY = python("pathway", "pathway_tables", "pathway==0.33.0", "redis==8.1.0")
FAUST = python(
    "faust", "faust_agent", "faust-streaming[fast,orjson,uvloop]==0.15.3", "redis==8.1.0"
)
BYTEWAX_LEAVES_OUT = (
    "duplicates count twice, a restart begins anew, events ten minutes late are lost, and a window "
    "is written only then"
)


def panes(prepare: Callable[[], Sequence[str]]) -> Callable[[], Sequence[str]]:
    """The same program, which merges panes into sliding windows by hand."""
    return lambda: [*prepare(), "--panes"]


CONTESTANTS: tuple[Contestant, ...] = (
    Contestant("streamer, this job", own("streamer_worker", "--only"), EXACT, wrong=wrong_totals),
    Contestant("streamer, default", own("streamer_worker"), EXACT, wrong=wrong_totals),
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
    Contestant(
        "Quix Streams, hopping",
        QUIX,
        "duplicates count twice, and so does what is read again after a crash",
        SLOW,
    ),
    Contestant(
        "Quix Streams, panes",
        panes(QUIX),
        "duplicates count twice, and a restart forgets the panes of open windows",
        FAIR,
    ),
    Contestant(
        "Bytewax, sliding",
        BYTEWAX,
        BYTEWAX_LEAVES_OUT,
        MEDIUM,
    ),
    Contestant(
        "Bytewax, panes",
        panes(BYTEWAX),
        BYTEWAX_LEAVES_OUT,
        FAIR,
    ),
    Contestant(
        "Pathway, sliding",
        PATHWAY,
        "duplicates count twice, and a restart begins anew",
        SLOW,
    ),
    Contestant(
        "Pathway, panes",
        panes(PATHWAY),
        "duplicates count twice, and a restart begins anew",
    ),
    Contestant(
        "ClickHouse (chdb)",
        python(
            "clickhouse", "clickhouse", "chdb==4.4.0", "confluent-kafka==2.16.1", "redis==8.1.0"
        ),
        "duplicates count twice, and a restart begins anew",
    ),
    Contestant(
        "Faust agent",
        FAUST,
        "duplicates count twice, and a restart forgets the panes of open windows",
        SLOW,
    ),
    Contestant(
        "Faust agent, in memory",
        lambda: [*FAUST(), "--memory"],
        "duplicates count twice, and a restart begins anew",
        MEDIUM,
    ),
)
