"""Topics that are named by a pattern, where a cluster cannot be asked which there are."""

from __future__ import annotations

from typing import Any

import pytest

from streamer.errors import BrokerError
from streamer.kafka.patterns import with_topics
from streamer.settings.load import parse
from streamer.settings.model import Settings
from streamer.testing.embedded import create_topics, delete_topics, free_port
from tests.support.fixtures import MakeTopics


def reading(brokers: str, shown: str, clicked: str) -> Settings:
    """Impressions of the cluster at these brokers, and clicks of one that is away."""
    fields = {"ts": "at", "item_id": "item"}
    sources: list[dict[str, Any]] = [
        {"topics": [f"^{shown}$"], "kind": {"fixed": "impression"}, "fields": fields},
        {"topics": [f"^{clicked}"], "kind": {"fixed": "click"}, "fields": fields, "cluster": "eu"},
    ]
    away = {"eu": {"brokers": f"127.0.0.1:{free_port()}"}}
    return parse({"kafka": {"brokers": brokers}, "clusters": away, "sources": sources})


@pytest.mark.parametrize(
    ("stored", "read", "others"), [(None, "ab", "c"), (2, "ab", "c"), (3, "c", "ab")]
)
async def test_a_topic_with_other_partitions_is_named_and_not_read(
    kafka: str, topics: MakeTopics, stored: int | None, read: str, others: str
) -> None:
    base, left_out = topics(partitions=1).impressions, dict[str, str]()
    counts = {f"{base}-{name}": n for name, n in (("a", 2), ("b", 2), ("c", 3))}
    for topic, count in counts.items():
        await create_topics(kafka, [topic], count)
    fields = {"ts": "at", "item_id": "item"}
    source = {"topics": [f"^{base}-"], "kind": {"fixed": "impression"}, "fields": fields}
    settings = parse({"kafka": {"brokers": kafka}, "sources": [source]})
    found = await with_topics(settings, stored, left_out.__setitem__)
    await delete_topics(kafka, list(counts))
    assert sorted(found.logs) == [f"{base}-{name}" for name in read]
    assert left_out.keys() == {f"{base}-{name}" for name in others}
    for topic, why in left_out.items():
        assert f"topic {topic} of a pattern is not read: it has {counts[topic]} partitions" in why


async def test_topics_that_were_counted_stand_for_those_of_a_cluster_that_is_away(
    kafka: str, topics: MakeTopics
) -> None:
    shown = topics(partitions=2).impressions
    settings, left_out = reading(kafka, shown, "taps"), dict[str, str]()
    counted = {shown: shown, "taps-1@eu": "taps-1", "taps-2": "taps-2", "other@eu": "other"}
    found = await with_topics(settings, 2, left_out.__setitem__, counted)
    assert list(found.logs) == [shown, "taps-1@eu"]
    assert left_out == {}


async def test_a_pattern_of_a_cluster_that_is_away_is_left_out_where_nothing_was_counted(
    kafka: str, topics: MakeTopics
) -> None:
    shown = topics(partitions=2).impressions
    settings, left_out = reading(kafka, shown, "taps"), dict[str, str]()
    found = await with_topics(settings, None, left_out.__setitem__, {})
    assert list(found.logs) == [shown]
    (why,) = left_out.values()
    assert list(left_out) == ["^taps@eu"]
    assert why.startswith("topics ^taps@eu are not read: Kafka cluster 'eu': "), why


async def test_who_must_be_told_which_topics_there_are_gets_an_error(
    kafka: str, topics: MakeTopics
) -> None:
    settings = reading(kafka, topics(partitions=2).impressions, "taps")
    with pytest.raises(BrokerError, match=r"clusters\.eu"):
        await with_topics(settings)


async def test_the_cluster_of_kafka_is_needed_unless_its_topics_were_counted() -> None:
    settings = reading(f"127.0.0.1:{free_port()}", "web", "taps")
    with pytest.raises(BrokerError, match="kafka"):
        await with_topics(settings, 2, counted={"taps@eu": "taps"})
    found = await with_topics(settings, 2, counted={"web": "web", "taps@eu": "taps"})
    assert list(found.logs) == ["web", "taps@eu"]
