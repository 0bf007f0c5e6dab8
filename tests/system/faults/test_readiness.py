"""Readiness tells the truth within seconds: with nothing counted, and while Redis is full."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiokafka import AIOKafkaProducer
from redis.asyncio import Redis

from streamer.kafka.log_ends import KafkaLogEnds
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.model import Settings
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeRedis, MakeTopics
from tests.support.lanes import long, shortened
from tests.support.workers import bench, document_of, produce, until
from tests.system.faults.load import Load

NOTICED_SECONDS = 5.0
"""Three, and what a loaded machine needs to ask and to answer."""
VALUE = b'{"ts": 1700000000000, "user_id": "u", "item_id": "i"}'


@contextlib.asynccontextmanager
async def exporting(settings: Settings) -> AsyncIterator[str]:
    """The URL of an exporter that follows the ends of the logs."""
    exporter = Exporter(settings, RedisStore(settings.redis), KafkaLogEnds(settings))
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    yield f"http://{HOST}:{await listen(runner, HOST, 0)}"
    await runner.cleanup()


async def readiness(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(f"{url}/readyz") as answer:
        return await answer.text()


async def test_nothing_is_ready_while_records_wait_for_a_first_worker(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=2)
    log = [LogRecord("clicks", i % 2, i // 2, 1_700_000_000_000, VALUE) for i in range(20)]
    await produce(kafka, names, log)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    async with (
        bench(tmp_path, document) as made,
        exporting(made.settings) as url,
        aiohttp.ClientSession() as session,
    ):

        async def says() -> bool:
            found = await readiness(session, url)
            return "nothing is counted yet, and 20 records wait: no worker is running" in found

        await until(says, "it says that nobody counts", seconds=NOTICED_SECONDS + 5)
        made.start_worker()

        async def is_ready() -> bool:
            return await readiness(session, url) == "ready\n"

        await until(is_ready, "a worker has counted them", made.said)


@long
@pytest.mark.usefixtures("apache_kafka")
@pytest.mark.parametrize("ending", shortened(["abort", "commit"]))
async def test_what_an_open_transaction_holds_back_is_named(
    ending: str, kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=2)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    producer = AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=redis_prefix)
    await producer.start()
    await producer.begin_transaction()
    for _ in range(2):
        await producer.send_and_wait(
            names.clicks, VALUE, partition=0, timestamp_ms=1_700_000_000_000
        )
    log = [LogRecord("clicks", 0, i, 1_700_000_000_000, VALUE) for i in range(50)]
    await produce(kafka, names, log)
    async with (
        bench(tmp_path, document) as made,
        exporting(made.settings) as url,
        aiohttp.ClientSession() as session,
    ):
        made.start_worker()

        async def shown(series: str) -> float:
            async with session.get(f"{url}/metrics") as answer:
                found = re.search(rf'{series}{{topic="clicks"}} (\S+)', await answer.text())
            return -1.0 if found is None else float(found[1])

        async def is_named() -> bool:
            said = await readiness(session, url)
            return said.startswith("ready\n") and "52 records have waited" in said

        await until(is_named, "the transaction is named", made.said, NOTICED_SECONDS + 30)
        assert "behind an open transaction" in await readiness(session, url)
        assert (await shown("unstable_records"), await shown("accepted_total")) == (52, 0)
        await getattr(producer, f"{ending}_transaction")()
        counted = 52 if ending == "commit" else 50

        async def is_over() -> bool:
            is_counted = await shown("accepted_total") == counted
            return is_counted and await readiness(session, url) == "ready\n"

        await until(is_over, "all is counted", made.said)
        assert await shown("unstable_records") == 0
    await producer.stop()


@long
async def test_a_full_redis_is_noticed_under_load(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path
) -> None:
    server, names = make_redis(), topics(partitions=1)
    document = document_of(kafka, names, server.url, "full", {})
    log = [LogRecord("clicks", 0, i, 1_700_000_000_000 + i, VALUE) for i in range(40_000)]
    async with (
        bench(tmp_path, document) as made,
        exporting(made.settings) as url,
        aiohttp.ClientSession() as session,
        Redis.from_url(server.url) as there,
    ):
        made.start_worker()
        async with Load(kafka, names, log, 40.0):

            async def is_ready() -> bool:
                return await readiness(session, url) == "ready\n"

            async def counts() -> bool:
                await made.reader.refresh()
                return made.reader.stream_ms > 0 and await is_ready()

            await until(counts, "the worker counts", made.said)
            await there.config_set("maxmemory", 1)
            begun = time.monotonic()

            async def says() -> bool:
                return "Redis is full" in await readiness(session, url)

            await until(says, "it says so", made.said)
            assert time.monotonic() - begun < NOTICED_SECONDS
            await there.config_set("maxmemory", 0)
            await until(is_ready, "it is ready again", made.said)
