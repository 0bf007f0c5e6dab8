"""Workers on several hosts: one of them is cut off without a word, and comes back."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from streamer.cli.run import worker_command
from streamer.settings.model import Topics
from streamer.testing.embedded import create_topics
from tests.oracle.oracle import Record
from tests.support.agreement import to_log
from tests.support.hosts import Hosts, require_hosts
from tests.support.lanes import long
from tests.support.servers import KafkaServer, own_redis
from tests.support.workers import Bench, bench, document_of, until
from tests.system import test_cluster as cluster
from tests.system.faults.load import Load

records = cluster.records
LOAD_SECONDS = 60.0


async def owners(made: Bench) -> list[int]:
    """How many partitions each worker has that is there."""
    reports = await made.store.reports()
    owned = [list(r.owned.values()).count("owned") for r in reports if r.is_present]
    return sorted(count for count in owned if count)


@long
@pytest.mark.timeout(240)
async def test_a_host_that_was_cut_off_counts_nothing_twice(
    tmp_path: Path, records: list[Record]
) -> None:
    require_hosts()
    log, names = to_log(records), Topics()
    with Hosts(2) as hosts:
        redis = own_redis(options={"bind": f"127.0.0.1 {hosts.address}", "protected-mode": "no"})
        kafka = KafkaServer(tmp_path / "kafka")
        kafka.advertised_host = hosts.address
        with redis, kafka:
            await create_topics(kafka.brokers, names.named.values(), cluster.PARTITIONS)
            url = f"redis://{hosts.address}:{redis.port}/0"
            prefix = f"hosts-{uuid.uuid4().hex[:8]}"
            document = document_of(kafka.brokers, names, url, prefix, cluster.DOCUMENT)
            async with bench(tmp_path / "bench", document) as made:
                for number in range(2):
                    made.start_worker(hosts.command(number, worker_command()))
                half = cluster.PARTITIONS // 2

                async def is_shared() -> bool:
                    return await owners(made) == [half, half]

                async def is_taken_over() -> bool:
                    return await owners(made) == [cluster.PARTITIONS]

                await until(is_shared, "both hosts have partitions", made.said)
                async with Load(kafka.brokers, names, log, LOAD_SECONDS) as load:
                    await cluster.counted(made)
                    hosts.cut(0)
                    await until(is_taken_over, "the other host has all", made.said)
                    hosts.join(0)
                    await until(is_shared, "they share again", made.said)
                    await load.finish()
                await cluster.check(made, records)
