"""Redis loses replies, is slow, dies, is rolled back, full or read-only: no number changes."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from redis.asyncio import Redis

from streamer.errors import StoreError
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings.model import Topics
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST, EmbeddedRedis
from tests.support.cases import (
    LIVE,
    PARTITIONS,
    Case,
    check_dead_letters,
    check_readings,
    check_states,
    random_case,
)
from tests.support.fixtures import MakeRedis, MakeTopics
from tests.support.lanes import long, sized
from tests.support.workers import Bench, bench, document_of, ends_of, until
from tests.system.faults.load import Load
from tests.system.faults.proxy import Proxy

SWALLOWED = sized(2, 100)
LIMIT_SECONDS = 240
AOF = {"appendfsync": "always", "repl-diskless-sync-delay": "0"}


@pytest.fixture(scope="module")
def case() -> Case:
    return random_case(LIVE, sized(1_200, 12_000), 4)


@dataclass
class Scene:
    """Two workers that read a log while it is written, an exporter, and a proxy to Redis."""

    made: Bench
    load: Load
    proxy: Proxy
    session: aiohttp.ClientSession
    url: str

    async def readiness(self) -> str:
        """What ``/readyz`` says."""
        async with self.session.get(f"{self.url}/readyz") as answer:
            text = await answer.text()
            assert (answer.status == 200) == (text == "ready\n")
            return text

    async def is_ready(self) -> bool:
        return await self.readiness() == "ready\n"

    async def says(self, what: str, seconds: float = 40.0) -> None:
        last = ""

        async def said() -> bool:
            nonlocal last
            last = await self.readiness()
            return what in last

        await until(said, f"/readyz says {what!r}", lambda: last + self.made.said(), seconds)

    async def recovers(self) -> None:
        await until(self.is_ready, "/readyz is ready again", self.made.said)


@contextlib.asynccontextmanager
async def scene(
    kafka: str, names: Topics, server: EmbeddedRedis, directory: Path, case: Case, seconds: float
) -> AsyncIterator[Scene]:
    """Under load from the start to the end; then everything is compared."""
    async with Proxy(server.port) as proxy:
        document = document_of(kafka, names, proxy.url, "faults", LIVE)
        async with bench(directory, document) as made:
            exporter = Exporter(made.settings, RedisStore(made.settings.redis))
            runner = web.AppRunner(application(exporter))
            await runner.setup()
            url = f"http://{HOST}:{await listen(runner, HOST, 0)}"
            for _ in range(2):
                made.start_worker()
            async with (
                aiohttp.ClientSession() as session,
                Load(kafka, names, case.log, seconds) as load,
            ):
                stage = Scene(made, load, proxy, session, url)
                await _commits(stage, 2)
                await stage.recovers()
                yield stage
                await load.finish()
                await made.settle(ends_of(case.log))
                await stage.recovers()
            await runner.cleanup()
            await check_readings(made, case.records)
            await made.stop_workers()
            await check_states(made, case)
            await check_dead_letters(kafka, names, case)


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_swallowed_replies_delays_and_cuts(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path, case: Case
) -> None:
    names, server = topics(partitions=PARTITIONS), make_redis()
    async with scene(kafka, names, server, tmp_path, case, 60.0) as stage:
        proxy = stage.proxy
        proxy.swallow = 0.5

        async def swallowed() -> bool:
            return proxy.swallowed >= SWALLOWED

        await until(swallowed, f"{SWALLOWED} replies are lost", stage.made.said, LIMIT_SECONDS)
        proxy.calm()
        proxy.delay_seconds, proxy.cut = 0.3, 0.05

        async def cut() -> bool:
            return proxy.cuts >= SWALLOWED // 4

        await until(cut, "connections are cut", stage.made.said, LIMIT_SECONDS)
        proxy.calm()
    print(f"{proxy.swallowed} replies swallowed, {proxy.delayed} delays, {proxy.cuts} cuts")


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_crashes_a_rollback_and_a_fail_over(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path, case: Case
) -> None:
    names, server = topics(partitions=PARTITIONS), make_redis(appendonly=True, options=AOF)
    replica = make_redis(options={"replicaof": f"{HOST} {server.port}"})
    async with scene(kafka, names, server, tmp_path, case, 30.0) as stage:
        for _ in range(sized(1, 3)):
            server.kill()
            await stage.says("cannot read")
            server.start()
            await stage.recovers()
        await _roll_back(stage, server)
        await stage.recovers()
        await _fail_over(stage, server, replica)
        await stage.recovers()


async def _roll_back(stage: Scene, server: EmbeddedRedis) -> None:
    """Restore an older AOF."""
    older = server.directory / "older"
    shutil.copytree(server.directory / "appendonlydir", older)
    await _commits(stage, 3)
    server.kill()
    shutil.rmtree(server.directory / "appendonlydir")
    older.rename(server.directory / "appendonlydir")
    server.start()


async def _fail_over(stage: Scene, server: EmbeddedRedis, replica: EmbeddedRedis) -> None:
    """The replica stops following; seconds later it is made master, and the master is gone."""
    async with Redis.from_url(replica.url, decode_responses=True) as there:

        async def follows() -> bool:
            return (await there.info("replication")).get("master_link_status") == "up"

        await until(follows, "the replica follows")
        await there.replicaof("NO", "ONE")
    await _commits(stage, 3)
    stage.proxy.target = replica.port
    server.kill()
    stage.proxy.cut_all()


async def _commits(stage: Scene, count: int) -> None:
    """Wait for some commits of every partition that holds anything."""

    async def commits() -> int:
        with contextlib.suppress(StoreError):  # a restarted server has closed our connection
            await stage.made.reader.refresh()
        return sum(m.commit for m in stage.made.reader.manifests.values())

    before = await commits()

    async def more() -> bool:
        return await commits() >= before + count

    await until(more, f"{count} more commits", stage.made.said)


@long
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_full_memory_and_a_read_only_replica(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path, case: Case
) -> None:
    names, server = topics(partitions=PARTITIONS), make_redis()
    replica = make_redis(options={"replicaof": f"{HOST} {server.port}"})
    async with scene(kafka, names, server, tmp_path, case, 60.0) as stage:
        await _commits(stage, 2)
        async with Redis.from_url(server.url, decode_responses=True) as there:
            await there.config_set("maxmemory", 1)
            await stage.says("no worker owns it")
            await there.config_set("maxmemory", 0)
        await stage.recovers()
        await _commits(stage, 2)
        stage.proxy.target = replica.port
        stage.proxy.cut_all()
        await stage.says("no worker owns it")
        stage.proxy.target = server.port
        stage.proxy.cut_all()
        await stage.recovers()
        said = stage.made.said()
        assert "when used memory > 'maxmemory'" in said
        assert "read only replica" in said


async def test_an_evicting_redis_is_refused_at_start(
    kafka: str, topics: MakeTopics, make_redis: MakeRedis, tmp_path: Path
) -> None:
    server = make_redis(options={"maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"})
    document = document_of(kafka, topics(partitions=1), server.url, "evicting", {})
    made = Bench(tmp_path, document)
    await made.store.close()
    command = [sys.executable, "-m", "streamer", "run", "-c", str(made.config)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
    assert "allkeys-lru" in done.stderr
    assert "noeviction" in done.stderr
