"""ClickHouse in process: each batch of raw lines is parsed and added to panes in SQL, and windows
that changed are summed in SQL. Its own tables of Kafka need the server."""

from __future__ import annotations

import redis
from chdb.session import Session
from confluent_kafka import Consumer

from benchmarks.peers import job

BATCH, BATCH_SECONDS = 100_000, 1.0
LABELS = "variant LowCardinality(String), surface LowCardinality(String)"
TABLES = (
    f"CREATE TABLE batch (type LowCardinality(String), ts UInt64, {LABELS}) ENGINE = Memory",
    f"""CREATE TABLE panes ({LABELS}, pane UInt64, impressions UInt64, clicks UInt64,
        conversions UInt64) ENGINE = SummingMergeTree ORDER BY (pane, variant, surface)""",
)
ADD = f"""
    INSERT INTO panes
    SELECT variant, surface, intDiv(ts, {job.SLIDE_MS}) AS pane, countIf(type = 'impression'),
        countIf(type = 'click'), countIf(type = 'conversion')
    FROM batch WHERE type != 'session' GROUP BY ALL
"""
ENDS = f"arrayMap(i -> (pane + i) * {job.SLIDE_MS}, range(1, {job.WINDOW_MS // job.SLIDE_MS + 1}))"
WINDOWS = f"""
    WITH changed AS (
        SELECT DISTINCT arrayJoin({ENDS}) AS end
        FROM (SELECT DISTINCT intDiv(ts, {job.SLIDE_MS}) AS pane FROM batch WHERE type != 'session')
    )
    SELECT end, variant, surface, sum(impressions), sum(clicks), sum(conversions)
    FROM panes ARRAY JOIN {ENDS} AS end
    WHERE end IN changed GROUP BY end, variant, surface
"""


def main() -> None:
    """Offsets are committed on a timer, by the consumer itself."""
    arguments = job.parser().parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": arguments.brokers,
            "group.id": arguments.prefix,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 4 << 20,
        }
    )
    consumer.subscribe([topic + arguments.suffix for topic in job.TOPICS])
    session = Session()
    session.query("CREATE DATABASE peers")
    session.query("USE peers")
    for table in TABLES:
        session.query(table)
    pipeline = redis.Redis.from_url(arguments.redis).pipeline(transaction=False)
    while True:
        messages = consumer.consume(BATCH, BATCH_SECONDS)
        if not messages:
            continue
        with session.send_insert(
            "INSERT INTO batch (type, ts, variant, surface)", "JSONEachRow"
        ) as rows:
            rows.append(
                b"\n".join([message.value() for message in messages if not message.error()])
            )
            rows.finish()
        session.query(ADD)
        for line in str(session.query(WINDOWS, "TSV")).splitlines():
            end, variant, surface, *counts = line.split("\t")
            fields = dict(zip(job.FIELDS, counts, strict=True))
            pipeline.hset(job.key(arguments.prefix, int(end), variant, surface), mapping=fields)
        pipeline.execute()
        session.query("TRUNCATE TABLE batch")


if __name__ == "__main__":
    main()
