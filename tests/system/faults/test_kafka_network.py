"""Connections to Kafka damage bytes, or hang; a log is damaged on its disk."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from streamer.server.exporter import Exporter
from streamer.settings import limits
from streamer.settings.model import Topics
from streamer.state.topics import TopicState
from streamer.testing.embedded import create_topics
from tests.support.lanes import long
from tests.support.required import require
from tests.support.servers import KafkaServer
from tests.support.workers import Bench, Worker, as_toml, bench, document_of, produce, until
from tests.system import test_rekeying as rekeying
from tests.system.faults.proxy import Proxy
from tests.system.faults.test_kafka import impressions


class Behind:
    """A broker of this test alone; its clients are sent to the proxy."""

    def __init__(self, server: KafkaServer, proxy: Proxy) -> None:
        self.server, self.proxy = server, proxy
        self.names = Topics()

    async def start(self, partitions: int = 1) -> None:
        self.server.advertised_port = self.proxy.port
        await asyncio.to_thread(self.server.start)
        self.proxy.target = self.server.port
        names = list(self.names.named.values())
        await create_topics(self.proxy.brokers, names, partitions)


@pytest.fixture
async def behind(tmp_path: Path) -> AsyncIterator[Behind]:
    require("Apache Kafka")
    server = KafkaServer(tmp_path / "kafka")
    async with Proxy(0) as proxy:
        try:
            yield Behind(server, proxy)
        finally:
            await asyncio.to_thread(server.kill)


async def state_of(made: Bench, number: int = 0) -> TopicState | None:
    await made.reader.refresh()
    manifest = made.reader.manifests.get(number)
    return manifest.topics["impressions"] if manifest else None


async def has_read(made: Bench, offset: int, number: int = 0) -> bool:
    state = await state_of(made, number)
    return state is not None and state.next_offset >= offset


async def problems_of(made: Bench) -> str:
    reports = await made.store.reports()
    return str([report.log_problems for report in reports])


@long
async def test_a_batch_that_a_connection_damages_is_fetched_again(
    behind: Behind, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    await behind.start()
    proxy, names = behind.proxy, behind.names
    flipped: list[int] = []

    def flip(data: bytes) -> bytes:
        """A byte of a record, now and then."""
        at = data.find(b'"item_id"')
        if at < 0 or len(flipped) >= 4:
            return data
        flipped.append(at)
        return data[:at] + b"_" + data[at + 1 :]

    document = document_of(proxy.brokers, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        proxy.damage = flip
        worker = made.start_worker()
        for first in range(0, 300, 100):
            await produce(proxy.brokers, names, impressions(first, first + 100), None)

        async def is_reported() -> bool:
            return "arrived damaged" in await problems_of(made)

        await until(is_reported, "it is reported meanwhile", made.said)
        await until(lambda: has_read(made, 300), "all are read", made.said)
        state = await state_of(made)
        assert state is not None
        assert (state.counters["accepted"], state.lost, len(flipped)) == (300, 0, 4), made.said()

        async def is_over() -> bool:
            return await problems_of(made) == "[[]]"

        await until(is_over, "the problem is over", made.said)
        await worker.stop()


@long
async def test_a_batch_that_is_damaged_in_its_log_is_lost_once(
    behind: Behind, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    await behind.start(partitions=2)
    proxy, names = behind.proxy, behind.names
    records = [
        replace(r, partition=number) for number in range(2) for r in impressions(0, 300, "item-")
    ]
    for first in (0, 100, 200, 300, 400, 500):  # batches of 100
        await produce(proxy.brokers, names, records[first : first + 100], None)
    await asyncio.to_thread(behind.server._end, signal.SIGTERM)
    (segment,) = (behind.server.directory / "data" / f"{names.impressions}-0").glob("*.log")
    data = segment.read_bytes()
    assert data.count(b'"item-150"') == 1
    segment.write_bytes(data.replace(b'"item-150"', b'"item+150"'))
    await asyncio.to_thread(behind.server.start)
    proxy.target = behind.server.port
    document = document_of(proxy.brokers, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        exporter = Exporter(made.settings, made.store)
        worker = made.start_worker()
        await until(lambda: has_read(made, 300, 1), "the other one is read", made.said)
        assert not await has_read(made, 300)
        text = f"{names.impressions}/0: the record batch at offset 1"
        await until(lambda: _shows(exporter, text), "the problem is shown", made.said)
        await until(lambda: has_read(made, 300), "it goes on behind it", made.said)
        state = await state_of(made)
        assert state is not None
        assert (state.counters["accepted"], state.lost) == (
            300 - state.lost,
            state.gaps[0][1] - state.gaps[0][0] + 1,
        )
        assert 0 < state.lost <= 100
        assert state.gaps[0][0] <= 150 <= state.gaps[0][1]
        assert worker.said().count("cannot be read (crc): they are lost") == 1
        await worker.stop()


async def _shows(exporter: Exporter, text: str) -> bool:
    await exporter.refresh()
    return text in str(exporter.health.problems)


@long
async def test_what_is_rekeyed_is_fetched_again_where_a_connection_damages_it(
    behind: Behind, tmp_path: Path
) -> None:
    await behind.start()
    proxy, names, source = behind.proxy, behind.names, "web"
    flipped: list[int] = []

    def flip(data: bytes) -> bytes:
        at = data.find(b'"sku"')
        if at < 0 or len(flipped) >= limits.DAMAGED_FETCHES - 1:
            return data
        flipped.append(at)
        return data[:at] + b"_" + data[at + 1 :]

    config = tmp_path / "streamer.toml"
    config.write_text(as_toml(rekeying.document_of(proxy.brokers, source, names, "g")))
    await create_topics(proxy.brokers, [source], 1)
    made = [event for event in rekeying.events(300) if event["event"] == "shown"]
    await rekeying.produce(proxy.brokers, source, made, None)
    proxy.damage = flip
    command = [sys.executable, "-m", "streamer", "rekey", "-c", str(config), "--until-end"]
    worker = Worker(config, tmp_path / "rekey.log", command)
    assert await asyncio.to_thread(worker.process.wait, 60) == 0, worker.said()
    written = await rekeying.committed(proxy.brokers, names.impressions, 1)
    refused = await rekeying.committed(proxy.brokers, names.dead_letters, 1)
    assert len(written) + len(refused) == len(made)
    assert len(flipped) == limits.DAMAGED_FETCHES - 1
    assert "cannot be read" not in worker.said()


@long
async def test_connections_that_hang_are_reported_and_replaced(
    behind: Behind, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    await behind.start()
    proxy, names = behind.proxy, behind.names
    document = document_of(proxy.brokers, names, redis_url, redis_prefix, {})
    async with bench(tmp_path, document) as made:
        exporter = Exporter(made.settings, made.store)
        worker = made.start_worker()
        await produce(proxy.brokers, names, impressions(0, 100))
        await until(lambda: has_read(made, 100), "the first are read", made.said)
        proxy.hang_all()
        hung_at = time.monotonic()
        refused = [replace(r, value=b"{}") for r in impressions(199, 200)]  # needs a dead letter
        await produce(proxy.brokers, names, impressions(100, 199) + refused)
        await until(
            lambda: _shows(exporter, "has not answered for more than"), "it is reported", made.said
        )
        reported_at = time.monotonic()
        await until(lambda: has_read(made, 200), "connected again", made.said)
        read_at = time.monotonic()
        print(
            f"reported after {reported_at - hung_at:.1f} s, counted after {read_at - hung_at:.1f} s"
        )
        assert read_at - hung_at < 10
        assert reported_at - hung_at < 3.5
        await until(lambda: _is_over(exporter), "the problem is over", made.said)
        await worker.stop()


async def _is_over(exporter: Exporter) -> bool:
    return not await _shows(exporter, "has not answered")
