"""A log goes on where it stood, whatever the settings call it; what may count twice is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer.errors import SettingsError
from streamer.ingest.hash_key import FIXED_KEY
from streamer.metrics.catalogue import Catalogue
from streamer.settings.load import parse
from streamer.settings.logs import ClusterIds
from streamer.state.journal import Journal
from streamer.state.log_identity import LogIdentityError, require_group
from streamer.state.manifest import decode
from streamer.state.memory import MemoryStore
from streamer.state.partition import Partition
from streamer.state.restore import load_partition
from streamer.state.store import Answer
from tests.support.engines import LogChunk, LogRecord, records_of
from tests.support.own_names import own_names

Object = dict[str, Any]
OURS: ClusterIds = {None: "kafka-1"}
NAMED: ClusterIds = {None: "kafka-1", "main": "kafka-1"}
TOPICS = ("impressions", "clicks", "conversions", "sessions")
BROKERS = {"main": {"brokers": "localhost:1"}}
T0 = 1_700_000_000_000


def source(topic: str, kind: str, fields: Object | None = None, **more: Any) -> Object:
    """A source of our own names, but for those of ``fields``."""
    named = own_names(lists=False, **(fields or {}))
    return {"topics": [topic], "kind": {"fixed": kind}, "fields": named, **more}


def sources(**more: Any) -> list[Object]:
    """The four topics of our own shape, each as a source."""
    return [source(topic, topic.removesuffix("s"), **more) for topic in TOPICS]


async def load(store: MemoryStore, document: Object, ids: ClusterIds) -> Journal:
    settings = parse(document)
    partition = Partition(settings, Catalogue(settings), FIXED_KEY, ids)
    claim, stored = await store.claim(0)
    return await load_partition(store, 0, partition, claim, stored)


async def feed(store: MemoryStore, journal: Journal, log: str, count: int) -> None:
    """Events behind those that were read, and a commit."""
    first = journal.partition.logs[log].next_offset
    records = [
        LogRecord(log, 0, first + i, T0, json.dumps(event).encode())
        for i in range(count)
        for event in [{"ts": T0, "user_id": "u", "item_id": f"i{first + i}"}]
    ]
    journal.partition.apply([records_of(LogChunk(log, 0, records))])
    assert await store.commit(0, journal.prepare()) == Answer.OK


async def counted(document: Object | None = None) -> MemoryStore:
    """A state with ten impressions of the settings."""
    store = MemoryStore()
    await store.set_partitions(1)
    await store.set_hash_key(FIXED_KEY)
    journal = await load(store, document or {}, OURS)
    await feed(store, journal, next(iter(journal.partition.logs)), 10)
    return store


SAME: dict[str, tuple[Object, ClusterIds, str]] = {
    "as sources": ({"sources": sources()}, OURS, "impressions"),
    "said in full": ({"sources": sources(fields={"item_id": "item_id"})}, OURS, "impressions"),
    "in a cluster with a name": (
        {"sources": [*sources(cluster="main")[:1], *sources()[1:]], "clusters": BROKERS},
        NAMED,
        "impressions@main",
    ),
    "one of them only": ({"sources": sources()[:1]}, OURS, "impressions"),
    "with unknown ids": ({"sources": sources()}, {}, "impressions"),
}


@pytest.mark.parametrize("name", SAME)
async def test_a_log_goes_on_where_it_stood(name: str) -> None:
    document, ids, log = SAME[name]
    store = await counted()
    await store.set_keyed({"impressions": False})
    journal = await load(store, document, ids)
    assert (await store.keyed())[log] is False
    assert journal.partition.logs[log].next_offset == 10
    await feed(store, journal, log, 5)
    topics = decode(store.states[0].manifest).topics
    assert len(topics) == len(TOPICS), "a log is there twice"
    assert (topics[log].counters["accepted"], topics[log].next_offset) == (15, 15)
    assert topics[log].cluster_id == "kafka-1"


async def test_a_topic_with_another_name_moves_to_a_source() -> None:
    store = await counted({"kafka": {"topics": {"impressions": "shop.shown"}}})
    document = {"sources": [source("shop.shown", "impression"), *sources()[1:]]}
    journal = await load(store, document, OURS)
    assert journal.partition.logs["shop.shown"].next_offset == 10
    back = await load(store, {"kafka": {"topics": {"impressions": "shop.shown"}}}, OURS)
    assert back.partition.logs["impressions"].next_offset == 10


async def test_the_same_topic_of_another_cluster_is_another_log() -> None:
    store = await counted()
    both = [source("impressions", "impression"), source("impressions", "impression", cluster="eu")]
    document = {"sources": both, "clusters": {"eu": {"brokers": "localhost:1"}}}
    journal = await load(store, document, {None: "kafka-1", "eu": "kafka-2"})
    assert journal.partition.logs["impressions"].next_offset == 10
    assert journal.partition.logs["impressions@eu"].is_new


REFUSED: dict[str, tuple[Object, ClusterIds, str]] = {
    "another mapping": (
        {"sources": sources(fields={"item_id": "sku"})},
        OURS,
        "item_id in 'impressions'.*: is sku, was item_id",
    ),
    "other positions": (
        {"sources": sources(positions_from=0)},
        OURS,
        "positions_from in .*: is 0, was 1",
    ),
    "a cluster whose id nobody knows": (
        {
            "sources": [*sources()[1:], source("impressions", "impression", cluster="main")],
            "clusters": BROKERS,
        },
        {None: "kafka-1"},
        "topic 'impressions@main' is new and 'impressions', which was counted, is not read any",
    ),
    "other topics altogether": (
        {"sources": [source("new", "impression")]},
        OURS,
        r"another system's: none of the topics that were counted \(impressions@kafka-1, clicks@"
        r".*\(new@kafka-1\).*another redis.prefix.* --take-over",
    ),
    "other topics under the same names": (
        {"kafka": {"topics": {topic: f"staging.{topic}" for topic in TOPICS}}},
        OURS,
        r"\(impressions@kafka-1, .* \(staging.impressions@kafka-1, ",
    ),
    "the same topics of another cluster": ({}, {None: "kafka-2"}, r"\(impressions@kafka-2, "),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_may_count_twice_is_refused_by_name(name: str) -> None:
    document, ids, message = REFUSED[name]
    store = await counted()
    before = store.states[0].manifest
    with pytest.raises(SettingsError, match=message):
        await load(store, document, ids)
    assert store.states[0].manifest == before


async def test_a_topic_is_not_read_twice_by_two_names_of_one_cluster() -> None:
    both = [*sources(), source("clicks", "click", cluster="main")]
    store = MemoryStore()
    await store.set_partitions(1)
    await store.set_hash_key(FIXED_KEY)
    with pytest.raises(LogIdentityError, match="'clicks' and 'clicks@main' are one topic"):
        await load(store, {"sources": both, "clusters": BROKERS}, NAMED)


async def test_rekeyed_topics_do_not_follow_their_sources() -> None:
    shop = [source("shop", "impression")]
    store = await counted({"sources": shop})
    rekeyed = {"sources": shop, "kafka": {"rekeyed": True}}
    with pytest.raises(LogIdentityError, match="none of the topics that were counted"):
        await load(store, rekeyed, OURS)


ORDERS = source("orders", "click")
EU = source("orders", "click", cluster="eu")
CLUSTERS = {"eu": {"brokers": "localhost:1"}}
X, Y, Z = "kafka-x", "kafka-y", "kafka-z"


@pytest.mark.parametrize("first", [0, 1])
async def test_a_log_that_takes_the_name_of_another_one_does_not_replace_it(first: int) -> None:
    store = MemoryStore()
    await store.set_partitions(1)
    await store.set_hash_key(FIXED_KEY)
    listed = [ORDERS, EU] if first == 0 else [EU, ORDERS]
    both = {"sources": listed, "clusters": CLUSTERS}
    journal = await load(store, both, {None: X, "eu": Y})
    await feed(store, journal, "orders", 10)
    await feed(store, journal, "orders@eu", 30)
    journal = await load(store, {"sources": [ORDERS]}, {None: Y})  # X is not read any more
    assert journal.partition.logs["orders"].next_offset == 30
    await feed(store, journal, "orders", 5)
    us = source("orders", "click", cluster="us")
    again = {"sources": [ORDERS, us], "clusters": {"us": CLUSTERS["eu"]}}
    journal = await load(store, again, {None: Y, "us": X})
    assert journal.partition.logs["orders"].next_offset == 35
    assert journal.partition.logs["orders@us"].next_offset == 10


async def test_a_cluster_that_is_away_may_be_the_one_that_was_counted() -> None:
    store = await counted({"sources": sources()})
    old = source("impressions", "impression", cluster="old")
    document = {"sources": [*sources()[:1], old], "clusters": {"old": {"brokers": "localhost:1"}}}
    with pytest.raises(
        LogIdentityError, match="'impressions@old' does not say who it is; if it is"
    ):
        await load(store, document, {None: Z})
    journal = await load(store, document, {None: Z, "old": "kafka-1"})
    assert journal.partition.logs["impressions@old"].next_offset == 10
    assert journal.partition.logs["impressions"].is_new


async def test_another_topic_under_the_name_of_one_that_was_counted_begins_anew() -> None:
    store = await counted()
    journal = await load(store, {"kafka": {"topics": {"impressions": "shown"}}}, OURS)
    assert journal.partition.logs["impressions"].is_new
    await feed(store, journal, "impressions", 5)
    topics = decode(store.states[0].manifest).topics
    assert (
        topics["impressions"].counters["accepted"],
        topics["impressions@kafka-1"].counters["accepted"],
    ) == (5, 10)
    back = await load(store, {}, OURS)
    assert back.partition.logs["impressions"].next_offset == 10


@pytest.mark.parametrize("stored", [None, "a@x", "a@"])
def test_a_group_goes_on(stored: str | None) -> None:
    require_group("p", stored, "a@x")
    require_group("p", stored, "a@")


@pytest.mark.parametrize("stored", ["b@x", "a@y", "b@"])
def test_another_group_is_refused(stored: str) -> None:
    with pytest.raises(LogIdentityError, match=f"'p' is that of the consumer group {stored}, not"):
        require_group("p", stored, "a@x")


async def test_a_mapping_is_compared_after_the_topic_was_not_read_for_a_while() -> None:
    store = await counted({"sources": sources()})
    journal = await load(store, {"sources": sources()[:1]}, OURS)
    await feed(store, journal, "impressions", 1)
    mapped = [*sources()[:1], source("clicks", "click", fields={"item_id": "sku"})]
    with pytest.raises(SettingsError, match="item_id in 'clicks': is sku, was item_id"):
        await load(store, {"sources": mapped}, OURS)
    journal = await load(store, {"sources": sources()}, OURS)
    assert not journal.partition.logs["clicks"].is_new


async def test_a_cluster_that_is_renamed_while_it_is_away_is_waited_for() -> None:
    """The topic of its new name may be the one that was counted."""
    clicks = source("clicks", "click")
    before = source("impressions", "impression", cluster="eu")
    after = source("impressions", "impression", cluster="main")
    store = await counted({"sources": [before, clicks], "clusters": {"eu": BROKERS["main"]}})
    with pytest.raises(LogIdentityError, match="'impressions@main' does not say who it is"):
        await load(store, {"sources": [after, clicks], "clusters": BROKERS}, OURS)
