"""The exporter's pages over a real Redis: what Prometheus gets, and health."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import aiohttp
import msgspec
import pytest
from aiohttp import web
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from redis.asyncio import Redis

from streamer import __version__
from streamer.kafka.log_ends import Bounds, LogEnds
from streamer.query.readings import ReadingSet
from streamer.server.app import application
from streamer.server.exporter import Exporter
from streamer.server.listener import listen
from streamer.settings import limits
from streamer.settings.model import Settings
from streamer.state.memory import MemoryStore
from streamer.state.reader import Reader
from streamer.state.redis.store import RedisStore
from streamer.state.worker_report import WorkerReport
from streamer.testing.embedded import HOST
from streamer.worker.app import create_app
from tests.support.agreement import log_records, to_log
from tests.support.engines import LogChunk, LogRecord, chunks_of
from tests.support.exporters import NAME, PARTITIONS, Site, fill, serving, settings_of
from tests.support.fixtures import MakeRedis
from tests.support.journals import commit, start
from tests.support.lanes import long
from tests.support.promtool import promtool_finds_nothing
from tests.support.workers import until


@pytest.fixture
async def site(
    redis_url: str, redis_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Site]:
    """Records wait in it, however long a loaded machine takes for a test."""
    monkeypatch.setattr(limits, "STANDSTILL_SECONDS", 600.0)
    async with serving(redis_url, redis_prefix) as found:
        yield found


async def test_metrics_are_the_readings(site: Site) -> None:
    status, text = await site.get("/metrics")
    assert status == 200
    samples = {}
    kinds = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples
            samples[key] = sample.value
            kinds[sample.name] = family.type
    readings = {(r.name, frozenset(r.labels.items())): r.value for r in site.expected.readings}
    assert readings
    for key, value in readings.items():
        assert samples.pop(key) == value
    for reading in site.expected.readings:
        assert kinds[reading.name] == reading.kind
    worker_report = {name for name, _ in samples}
    assert {
        "streamer_consumer_lag_records",
        "streamer_unstable_records",
        "streamer_partition_owner_info",
        "streamer_commit_seconds_bucket",
        "streamer_commit_seconds_count",
        "streamer_fenced_total",
        "streamer_dead_letters_total",
        "streamer_lost_records_total",
        "streamer_log_restarts_total",
        "streamer_readout_seconds",
    } <= worker_report
    lag = frozenset({"topic": "clicks", "partition": "0"}.items())
    assert samples["streamer_consumer_lag_records", lag] == 3
    owner = {"partition": "1", "worker": "host:2:b", "phase": "owned"}
    assert samples["streamer_partition_owner_info", frozenset(owner.items())] == 1


async def test_promtool_finds_nothing_wrong(site: Site) -> None:
    _, text = await site.get("/metrics")
    await promtool_finds_nothing(text)


async def test_formats_and_codings_are_negotiated(site: Site) -> None:
    async def page(**headers: str) -> tuple[aiohttp.ClientResponse, str]:
        async with site.session.get(site.url + "/metrics", headers=headers) as answer:
            return answer, await answer.text()  # which undoes gzip

    accept = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3"}
    names = {r.name for r in site.expected.readings}
    for headers, kind, parsed in (
        ({}, "text/plain; version=0.0.4; charset=utf-8", text_string_to_metric_families),
        (accept, "application/openmetrics-text; version=1.0.0; charset=utf-8", openmetrics),
    ):
        for coding in ("identity", "gzip"):
            answer, text = await page(**headers, **{"Accept-Encoding": coding})
            assert answer.headers["Content-Type"] == kind
            assert answer.headers.get("Content-Encoding", "identity") == coding
            found = {s.name: s for family in parsed(text) for s in family.samples}
            assert names <= set(found)
            assert found["streamer_build_info"].labels == {
                "version": __version__,
                "python": platform.python_version(),
            }
            assert found["process_resident_memory_bytes"].value > 1_000_000
            assert "process_cpu_seconds_total" in found
    _, text = await page()
    await promtool_finds_nothing(text)


async def test_health_readiness_and_page(site: Site) -> None:
    assert await site.get("/healthz") == (200, "ok\n")
    assert await site.get("/readyz") == (200, "ready\n")
    status, page = await site.get("/")
    assert status == 200
    assert "/metrics" in page
    assert (await site.get("/nothing"))[0] == 404


async def test_readyz_reports_a_workers_problem(site: Site) -> None:
    store = RedisStore(site.settings.redis)
    await store.report(WorkerReport("host:2:b", {1: "owned"}, problems={0: "no broker"}))
    status, text = await site.get("/readyz")
    assert (status, "host:2:b: partition 0: no broker" in text) == (503, True)
    await store.report(WorkerReport("host:2:b", {1: "owned"}))
    assert (await site.get("/readyz"))[0] == 200
    assert "streamer_ready 1.0" in (await site.get("/metrics"))[1]
    await store.close()


async def test_readyz_reports_a_partition_without_worker(site: Site) -> None:
    store = RedisStore(site.settings.redis)
    await store.report(WorkerReport("host:2:b", {1: "recovering"}))
    status, text = await site.get("/readyz")
    assert (status, text) == (503, "not ready:\npartition 1 of 2: no worker owns it\n")
    assert "streamer_ready 0.0" in (await site.get("/metrics"))[1]
    long_ago = msgspec.json.encode([1, WorkerReport("host:1:a", {0: "owned"})])
    await store.redis.hset(store.keys.workers, "host:1:a", long_ago)
    status, text = await site.get("/readyz")
    assert (status, "host:1:a: silent for" in text) == (503, True)
    assert "partitions 0, 1 of 2: no worker owns it" in text
    await store.leave("host:1:a")
    await store.leave("host:2:b")
    assert "partitions 0, 1 of 2: no worker owns it" in (await site.get("/readyz"))[1]
    for number in range(PARTITIONS):  # given back: nobody is there, and nobody is missed
        await store.redis.delete(store.keys.claim(number))
    assert (await site.get("/readyz"))[0] == 200
    await store.close()


async def test_windows_do_not_drain_while_a_transaction_holds_records_back() -> None:
    store, settings = MemoryStore(), Settings()
    run = await start(store, settings, 1)
    now_ms = await store.now_ms()
    event = b'{"ts":%d,"user_id":"u","item_id":"i"}' % now_ms
    run.engines.feed(LogChunk("clicks", 0, [LogRecord("clicks", 0, 0, now_ms, event)]))
    await commit(store, run, 0)
    ends = LogEnds({("clicks", 0): Bounds(0, 1, 1)})
    exporter = Exporter(settings, store, ends)
    await exporter.refresh()
    await asyncio.sleep(0.01)
    await exporter.refresh()
    assert exporter.at_ms > now_ms
    assert exporter.behind_seconds() == 0
    ends.bounds = {("clicks", 0): Bounds(0, 1, 51)}
    await exporter.refresh()
    assert exporter.at_ms == exporter.reader.stream_ms == now_ms
    assert (exporter.behind_seconds() or 0) > 0


async def test_totals_do_not_fall_when_the_store_is_wiped(
    redis_url: str, redis_prefix: str
) -> None:
    settings = settings_of(redis_url, redis_prefix)
    store = RedisStore(settings.redis)
    run = await fill(store, settings)
    exporter = Exporter(settings, store)
    before = await exporter.read(at_stream=True)
    # An older state: the same partitions, after their first commits only.
    for number in range(PARTITIONS):
        await store.redis.delete(store.keys.state(number))
    again = await start(store, settings, PARTITIONS)
    records = log_records(3, NAME, 800, PARTITIONS)
    for chunk in list(chunks_of(to_log(records), 50, 1))[:10]:
        again.engines.feed(chunk)
    for number in range(PARTITIONS):
        await commit(store, again, number)
    assert run.journals[0].claim != again.journals[0].claim
    after = await exporter.read(at_stream=True)
    totals = [
        {(r.name, *r.labels.items()): r.value for r in x.readings if r.kind == "counter"}
        for x in (before, after)
    ]
    assert all(totals[1][key] >= value for key, value in totals[0].items())
    await store.close()


async def test_redis_away_and_back(make_redis: MakeRedis) -> None:
    server = make_redis(appendonly=True, options={"appendfsync": "always"})
    settings = settings_of(server.url, "streamer")
    store = RedisStore(settings.redis)
    await fill(store, settings)
    exporter = Exporter(settings, store)
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    url = f"http://{HOST}:{await listen(runner, HOST, 0)}"
    async with aiohttp.ClientSession() as session:

        async def status(path: str) -> int:
            async with session.get(url + path) as answer:
                text = await answer.text()
                assert "Traceback" not in text
                return answer.status

        assert [await status(p) for p in ("/readyz", "/metrics", "/api/readings")] == [200] * 3
        server.kill()
        assert [await status(p) for p in ("/readyz", "/metrics", "/api/readings")] == [503] * 3
        assert await status("/healthz") == 200
        server.start()

        async def ready() -> bool:
            return await status("/readyz") == 200

        await until(ready, "ready again")
        assert [await status(p) for p in ("/metrics", "/api/readings")] == [200] * 2
    await runner.cleanup()


async def test_a_redis_that_hangs_is_called_that_within_three_seconds(
    make_redis: MakeRedis,
) -> None:
    server = make_redis()
    settings = settings_of(server.url, "streamer")
    exporter = Exporter(settings, RedisStore(settings.redis))
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    url = f"http://{HOST}:{await listen(runner, HOST, 0)}"
    async with aiohttp.ClientSession() as session, Redis.from_url(server.url) as there:
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        process = (await there.info())["process_id"]
        os.kill(process, signal.SIGSTOP)
        for path in ("/readyz", "/metrics", "/api/health"):
            started = time.monotonic()
            async with session.get(f"{url}{path}") as answer:
                assert answer.status == 503
                assert "Redis does not answer within 2 s: it hangs" in await answer.text()
            assert time.monotonic() - started < 3
        os.kill(process, signal.SIGCONT)
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 200
    await runner.cleanup()


async def test_a_full_redis_says_so_while_records_wait(make_redis: MakeRedis) -> None:
    server = make_redis()
    settings = settings_of(server.url, "streamer")
    store = RedisStore(settings.redis)
    await fill(store, settings)
    exporter = Exporter(settings, store, LogEnds({("clicks", 0): Bounds(0, 10**6, 10**6)}))
    await exporter.read()
    assert await store.fullness() is None
    async with Redis.from_url(server.url) as there:
        await there.config_set("maxmemory", "1mb")
    await asyncio.sleep(limits.STANDSTILL_SECONDS + 0.5)
    await exporter.read()
    problems = "; ".join(exporter.health.problems)
    assert "partition 0: records have waited for" in problems
    assert "of 1 MiB of maxmemory are used" in problems
    await store.close()


async def test_a_redis_that_evicts_from_now_on_is_not_ready(make_redis: MakeRedis) -> None:
    server = make_redis()
    settings = settings_of(server.url, "streamer")
    store = RedisStore(settings.redis)
    await fill(store, settings)
    app: Any = create_app(settings)
    app._runner = SimpleNamespace(
        worker_report=WorkerReport("host:1"), look_at_erasures=AsyncMock()
    )
    exporter = Exporter(settings, store)

    async def problems() -> str:
        await app.look_at_store()
        await store.report(app.runner.worker_report)
        await exporter.read()
        return "; ".join(exporter.health.problems)

    async with Redis.from_url(server.url) as there:
        assert "maxmemory-policy" not in await problems()
        for policy, limit in (("allkeys-lru", "0"), ("volatile-ttl", "100mb")):
            await there.config_set("maxmemory", limit)
            await there.config_set("maxmemory-policy", policy)
            assert f"Redis has maxmemory-policy '{policy}': it may drop state" in await problems()
        await there.config_set("maxmemory-policy", "noeviction")
        assert "maxmemory-policy" not in await problems()
    server.kill()
    await app.look_at_store()
    assert app.runner.worker_report.store_problem == ""
    await store.close()
    await app.store.close()


async def test_an_exporter_may_start_before_redis_and_before_any_worker(
    make_redis: MakeRedis,
) -> None:
    server = make_redis()
    server.kill()
    settings = settings_of(server.url, "streamer")
    exporter = Exporter(settings, RedisStore(settings.redis))
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    url = f"http://{HOST}:{await listen(runner, HOST, 0)}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 503
        server.start()
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        async with session.get(f"{url}/metrics") as answer:
            assert answer.status == 200
            text = await answer.text()
    assert 'streamer_events_total{topic="clicks"} 0' in text
    await runner.cleanup()


@long
async def test_a_damaged_store_is_named_on_every_page(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever value of Redis is damaged, in whatever way: 503 that names the keys, or, where the
    rest is whole without it, 200; never a fault of the exporter's own."""
    store = RedisStore(site.settings.redis)
    redis, prefix = store.redis, site.settings.redis.prefix
    refused = 0
    keys = sorted([key async for key in redis.scan_iter(f"{prefix}:*")])
    blobs = [key for key in keys if b":b:" in key]
    for key in [*blobs[:3], *(key for key in keys if key not in blobs and b"{1}" not in key)]:
        name, dumped = key.decode(), await redis.dump(key)
        fields = [None] if await redis.type(key) != b"hash" else await redis.hkeys(key)
        for field in fields:
            held = await redis.hget(key, field) if field else await _string(redis, key)
            if held is None:
                continue
            for damaged in (b"", b"\xc1", held[: len(held) // 2], held + b"x", b"9" + held[1:]):
                if field:
                    await redis.hset(key, field, damaged)
                else:
                    await redis.set(key, damaged)
                refused += await _refuses(site, f"{name} {field!r} {damaged[:20]!r}")
        await redis.delete(key)
        await redis.restore(key, 0, dumped)
        await _refuses(site, name)
    assert refused > 10
    assert [r for r in caplog.records if r.exc_info] == []
    await store.close()


async def _string(redis: Any, key: bytes) -> bytes | None:
    return await redis.get(key) if await redis.type(key) == b"string" else None


async def _refuses(site: Site, what: str) -> bool:
    """Whether fresh exporters answer 503 in words; no page answers anything but that or 200."""
    exporter = Exporter(site.settings, RedisStore(site.settings.redis))
    runner = web.AppRunner(application(exporter))
    await runner.setup()
    url = f"http://{HOST}:{await listen(runner, HOST, 0)}"
    statuses = set()
    for path in ("/metrics", "/api/readings", "/api/health", "/readyz", "/api/alerts"):
        async with site.session.get(url + path) as answer:
            text = await answer.text()
            assert answer.status in (200, 503), (what, path, text)
            is_named = path == "/readyz" or site.settings.redis.prefix in text
            assert answer.status == 200 or is_named, (what, path, text)
            statuses.add((path, answer.status))
    await runner.cleanup()
    return ("/metrics", 503) in statuses


@long
async def test_a_slow_readout_is_shared_by_all_who_wait(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look finds something new, and a readout takes 0.2 s: a scrape waits for the one that is
    under way, one of each other kind, and its own, however many others ask."""
    refresh, took = Reader.refresh, 0.2
    runs: list[float] = []

    async def changed(reader: Reader) -> None:
        await refresh(reader)
        reader.updates += 1

    def slow(*_: Any) -> ReadingSet:
        runs.append(time.monotonic())
        time.sleep(took)
        return site.expected

    monkeypatch.setattr(Reader, "refresh", changed)
    monkeypatch.setattr("streamer.server.exporter.readout", slow)
    paths = ["/metrics", "/metrics?at=stream", "/readyz", "/api/readings", "/api/alerts"] * 8
    others = [asyncio.create_task(site.get(path)) for path in paths]
    await asyncio.sleep(took / 2)
    before = len(runs)
    assert (await site.get("/metrics"))[0] == 200
    assert len(runs) - before < 8
    answers = await asyncio.gather(*others)
    assert {status for status, _ in answers} <= {200, 503}
    assert len(runs) < len(paths) / 2
