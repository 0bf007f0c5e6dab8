"""The store in Redis passes the suite of all stores, and refuses what may lose state."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis

from streamer.errors import StoreError
from streamer.settings import limits
from streamer.settings.model import Redis
from streamer.state.redis.store import RedisStore
from streamer.state.store import Answer, Commit, Store
from tests.state.experiment_suite import ExperimentSuite
from tests.state.journal_suite import JournalSuite
from tests.state.reader_suite import ReaderSuite
from tests.state.store_suite import StoreSuite, step
from tests.support.fixtures import MakeRedis
from tests.support.lanes import long


@pytest.fixture
async def store(redis_url: str, redis_prefix: str) -> AsyncIterator[Store]:
    made = RedisStore(Redis(url=redis_url, prefix=redis_prefix))
    yield made
    await made.close()


class TestRedisStore(StoreSuite):
    pass


class TestJournalInRedis(JournalSuite):
    lines = 400


class TestReaderInRedis(ReaderSuite):
    pass


@long
class TestExperimentsInRedis(ExperimentSuite):
    pass


async def test_hundreds_of_partitions_may_ask_at_once(make_redis: MakeRedis) -> None:
    store = RedisStore(Redis(url=make_redis().url, prefix="many"))
    try:
        claims = await asyncio.gather(*(store.claim(number) for number in range(300)))
        commits = [
            store.commit(number, step(claim, b"", b"p1", {"a": b"1"}))
            for number, (claim, _) in enumerate(claims)
        ]
        assert set(await asyncio.gather(*commits)) == {Answer.OK}
        releases = [store.release(number, claim) for number, (claim, _) in enumerate(claims)]
        await asyncio.gather(*releases)
        clients = await store.redis.info("clients")
        assert clients["connected_clients"] <= limits.REDIS_CONNECTIONS
    finally:
        await store.close()


async def test_a_commit_whose_blobs_are_gone_changes_nothing(
    redis_url: str, redis_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fail-over between the blobs and the script loses the blobs only."""
    store = RedisStore(Redis(url=redis_url, prefix=redis_prefix))
    claim, _ = await store.claim(0)
    whole = step(claim, b"", b"p1", {"a": b"1", "b": b"2"})
    write = store._write_blobs

    async def write_and_lose(partition: int, commit: Commit) -> None:
        await write(partition, commit)
        await store.redis.unlink(store.keys.blob(partition, "b"))

    monkeypatch.setattr(store, "_write_blobs", write_and_lose)
    assert await store.commit(0, whole) == Answer.INCOMPLETE
    assert (await store.read(0)).position == b""
    monkeypatch.undo()
    assert await store.commit(0, whole) == Answer.OK
    await store.close()


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"maxmemory-policy": "allkeys-lru"}, "allkeys-lru"),
        ({"maxmemory-policy": "allkeys-lru", "maxmemory": "100mb"}, "allkeys-lru"),
        ({"maxmemory-policy": "allkeys-random"}, "allkeys-random"),
        ({"maxmemory-policy": "volatile-lru", "maxmemory": "100mb"}, "volatile-lru"),
        ({"maxmemory": "100mb"}, None),
    ],
)
async def test_a_redis_that_may_evict_is_refused(
    make_redis: MakeRedis, options: dict[str, str], refused: str | None
) -> None:
    store = RedisStore(Redis(url=make_redis(options=options).url))
    try:
        if refused is None:
            await store.check()
        else:
            with pytest.raises(StoreError, match=refused):
                await store.check()
    finally:
        await store.close()


async def test_a_password_that_is_renewed_in_its_file_is_read_for_each_connection(
    make_redis: MakeRedis, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As a token of an hour is: the server takes the new one only, and closes what it had."""
    server, path = make_redis(), tmp_path / "token"
    with contextlib.closing(redis.Redis.from_url(server.url)) as admin:
        admin.config_set("requirepass", "first")
    path.write_text("first\n")
    store = RedisStore(Redis(url=server.url, password_file=str(path)))
    try:
        await store.check()
        with contextlib.closing(redis.Redis.from_url(server.url, password="first")) as admin:
            admin.config_set("requirepass", "second")
            admin.client_kill_filter(_type="normal", skipme=True)
        with contextlib.suppress(StoreError):
            await store.now_ms()  # the first connection is closed
        with pytest.raises(StoreError, match=r"redis\.username and its password"):
            await store.now_ms()
        path.write_text("second\n")
        await store.now_ms()
        path.unlink()
        await store.now_ms()  # a connection that is there needs no file
        assert caplog.text == ""
    finally:
        await store.close()


async def test_a_replica_is_refused(make_redis: MakeRedis) -> None:
    master = make_redis()
    replica = make_redis(options={"replicaof": f"127.0.0.1 {master.port}"})
    store = RedisStore(Redis(url=replica.url))
    try:
        with pytest.raises(StoreError, match="replica"):
            await store.check()
    finally:
        await store.close()


async def test_a_redis_that_is_away_is_a_clear_error(make_redis: MakeRedis) -> None:
    server = make_redis(appendonly=True, options={"appendfsync": "always"})
    store = RedisStore(Redis(url=server.url.replace("://", "://user:secret@")))
    plain = RedisStore(Redis(url=server.url))
    claim, _ = await plain.claim(0)
    await plain.commit(0, step(claim, b"", b"p1", {"a": b"1"}))
    server.kill()
    again = step(claim, b"p1", b"p2", {"b": b"2"}, ("a",))
    for away in (store, plain):
        with pytest.raises(StoreError) as failed:
            await away.commit(0, again)
        assert "\n" not in str(failed.value)
        assert f"127.0.0.1:{server.port}" in str(failed.value)
        assert "secret" not in str(failed.value)
    server.start()
    async with asyncio.timeout(20):
        assert await plain.commit(0, again) == Answer.OK
    assert await plain.blobs(0, ["a", "b"]) == [None, b"2"]
    await store.close()
    await plain.close()
