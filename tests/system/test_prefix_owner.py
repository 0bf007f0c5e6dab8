"""A prefix belongs to one system: others are refused by name, or take it over when told so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streamer.cli import run
from streamer.errors import SettingsError, StoreError
from streamer.settings.load import parse
from streamer.state.log_identity import LogIdentityError
from streamer.state.redis.store import RedisStore
from tests.support.engines import LogRecord
from tests.support.fixtures import MakeTopics
from tests.support.lanes import long
from tests.support.workers import Bench, bench, document_of, ends_of, produce, until

PARTITIONS = 2
PRODUCTION, STAGING = 40, 30
T0 = 1_700_000_000_000


def impressions(count: int) -> list[LogRecord]:
    event = b'{"ts": %d, "user_id": "u", "item_id": "i"}' % T0
    return [
        LogRecord("impressions", n % PARTITIONS, n // PARTITIONS, T0, event) for n in range(count)
    ]


async def everything(store: RedisStore) -> dict[bytes, Any]:
    """Whatever is stored under the prefix."""
    keys = sorted([key async for key in store.redis.scan_iter(f"{store.settings.prefix}:*")])
    return {key: await store.redis.dump(key) for key in keys}


async def count(made: Bench, expected: int) -> None:
    """Let one worker count so many impressions, and stop it."""
    worker = made.start_worker()
    await made.settle(ends_of(impressions(expected)))
    await worker.stop()
    await made.reader.refresh()
    accepted = [
        m.topics["impressions"].counters["accepted"] for m in made.reader.manifests.values()
    ]
    assert sum(accepted) == expected


def with_group(document: Mapping[str, Any], group: str) -> dict[str, Any]:
    return {**document, "kafka": {**document["kafka"], "group": group}}


@long
async def test_other_topics_are_refused_before_anything_is_touched(
    kafka: str,
    topics: MakeTopics,
    redis_url: str,
    redis_prefix: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, others = topics(partitions=PARTITIONS), topics(partitions=PARTITIONS)
    await produce(kafka, ours, impressions(PRODUCTION))
    await produce(kafka, others, impressions(STAGING))
    async with bench(
        tmp_path / "ours", document_of(kafka, ours, redis_url, redis_prefix, {})
    ) as made:
        await count(made, PRODUCTION)
        assert isinstance(made.store, RedisStore)
        store, before = made.store, await everything(made.store)
        staging = document_of(kafka, others, redis_url, redis_prefix, {})
        with pytest.raises(LogIdentityError) as refused:
            await run.preflight(parse(staging))
        assert await everything(store) == before
        for said in (f"{ours.impressions}@", f"{others.impressions}@", "another redis.prefix"):
            assert said in str(refused.value)
        assert "streamer run --take-over" in str(refused.value)

        await run.preflight(made.settings, may_take_over=True)  # it is ours: nothing is deleted
        assert await everything(store) == before

        still = made.start_worker()

        async def reports() -> bool:
            return bool(await store.reports())

        await until(reports, "it reports", still.said)
        with pytest.raises(StoreError, match=r"workers count under redis\.prefix .* stop them"):
            await run.preflight(parse(staging), may_take_over=True)
        await still.stop()
        await run.preflight(parse(staging), may_take_over=True)
        assert "what was stored is deleted" in capsys.readouterr().err
        left = {f"{redis_prefix}:group".encode(), f"{redis_prefix}:settings".encode()}
        assert (await everything(store)).keys() == left
    async with bench(tmp_path / "staging", staging) as made:
        await count(made, STAGING)


async def test_what_settings_do_not_have_any_more_is_kept_until_its_name_is_given(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    await produce(kafka, names, impressions(PRODUCTION))
    more = {"dimensions": [{"name": "device"}, {"name": "surface"}]}
    fewer = {"dimensions": [{"name": "surface"}]}
    document = document_of(kafka, names, redis_url, redis_prefix, more)
    async with bench(tmp_path / "more", document) as made:
        await count(made, PRODUCTION)
        assert isinstance(made.store, RedisStore)
        before = await everything(made.store)
        now = parse(document_of(kafka, names, redis_url, redis_prefix, fewer))
        with pytest.raises(
            SettingsError, match=r"device is dropped, .* with --accept-drop=device$"
        ):
            await run.preflight(now)
        assert await everything(made.store) == before
        await run.preflight(now, accepted=["device"])
        with pytest.raises(SettingsError, match=r"newer settings count here \(generation 2;"):
            await run.preflight(made.settings)
        newest = await run.preflight(made.settings, is_newest=True)
        assert newest.generation == 3
        with pytest.raises(SettingsError, match="newer settings count here"):
            await run.preflight(now, accepted=["device"])


@long
async def test_a_second_group_is_refused_at_the_claim(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    names = topics(partitions=PARTITIONS)
    document = document_of(kafka, names, redis_url, redis_prefix, {})
    second = with_group(document, f"{redis_prefix}-second")
    async with bench(tmp_path / "first", document) as made:
        made.start_worker()
        await produce(kafka, names, impressions(PRODUCTION))
        await made.settle(ends_of(impressions(PRODUCTION)))
        claims = [await made.store.owner(number) for number in range(PARTITIONS)]
        async with bench(tmp_path / "second", second) as other:
            intruder = other.start_worker()

            async def refused() -> bool:
                return f"is that of the consumer group {redis_prefix}@" in intruder.said()

            await until(refused, "it is refused", intruder.said)
            await intruder.stop()
            with pytest.raises(LogIdentityError, match="is that of the consumer group"):
                await run.preflight(other.settings)
        assert [await made.store.owner(number) for number in range(PARTITIONS)] == claims
        await made.stop_workers()
        await run.preflight(parse(second), may_take_over=True)  # the topics are the same
    async with bench(tmp_path / "third", second) as made:
        await count(made, PRODUCTION)


@long
async def test_a_renamed_topic_among_others_begins_beside_them(
    kafka: str, topics: MakeTopics, redis_url: str, redis_prefix: str, tmp_path: Path
) -> None:
    ours, others = topics(partitions=PARTITIONS), topics(partitions=PARTITIONS)
    await produce(kafka, ours, impressions(PRODUCTION))
    await produce(kafka, others, impressions(STAGING))
    async with bench(
        tmp_path / "ours", document_of(kafka, ours, redis_url, redis_prefix, {})
    ) as made:
        await count(made, PRODUCTION)
    mixed = msgspec.structs.replace(ours, impressions=others.impressions)
    document = document_of(kafka, mixed, redis_url, redis_prefix, {})
    await run.preflight(parse(document))
    async with bench(tmp_path / "mixed", document) as made:
        worker = made.start_worker()

        async def is_read() -> bool:
            await made.reader.refresh()
            found = [m.topics["impressions"] for m in made.reader.manifests.values()]
            return [t.next_offset for t in found] == [STAGING // PARTITIONS] * PARTITIONS

        await until(is_read, "the new one is read", worker.said)
        for manifest in made.reader.manifests.values():
            assert all(topic.restarts == 0 for topic in manifest.topics.values())
            accepted = sum(topic.counters["accepted"] for topic in manifest.topics.values())
            assert accepted == (PRODUCTION + STAGING) // PARTITIONS
        assert "truncated or recreated" not in worker.said()
        await worker.stop()
