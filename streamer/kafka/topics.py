"""What Kafka says about our topics: which exist, and with how many partitions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streamer.errors import BrokerError, StoreError
from streamer.kafka.client import Refusals, client_settings
from streamer.settings.clusters import MAIN, Cluster, Connection
from streamer.settings.logs import ClusterIds
from streamer.settings.model import Settings

_TIMEOUT_MS = 15_000


@contextlib.asynccontextmanager
async def admin_client(kafka: Connection, section: str = MAIN) -> AsyncIterator[Any]:
    """A connected admin client; BrokerError where Kafka cannot be reached or refuses us."""
    options = client_settings(kafka, section)
    client = AIOKafkaAdminClient(**options, request_timeout_ms=_TIMEOUT_MS)
    refusals = Refusals(section)
    try:
        with refusals:
            await client.start()
        yield client
    except (KafkaError, OSError) as error:
        reason = refusals.reason(error)
        address = f"{section}.brokers {kafka.brokers}"
        raise BrokerError(f"cannot use Kafka: {reason}; at {address}") from error
    finally:
        await client.close()


async def partitions_of(client: Any, names: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Partitions, described, of those of the topics that exist. (Asking for one by name could
    create it.)"""
    existing = set(await client.list_topics())
    wanted = [name for name in names if name in existing]
    answer = await client.describe_topics(wanted) if wanted else []
    described = {topic["topic"]: topic["partitions"] for topic in answer}
    return {name: described.get(name, []) for name in wanted}


async def partition_count(settings: Settings) -> int:
    """Partitions of the topics that are read; BrokerError where one is missing or they are not
    equal, or a cluster cannot be asked."""
    return (await partitions_and_ids(settings))[0]


async def partitions_and_ids(
    settings: Settings, when_away: Callable[[BrokerError], None] | None = None
) -> tuple[int, ClusterIds]:
    """``partition_count``, and the id that Kafka itself has for each cluster.

    ``when_away``: called with the error for another cluster than that of ``[kafka]``, whose topics
    are then not looked at.
    """
    partitions, ids = dict[str, int | None](), dict[str | None, str]()
    for cluster in settings.read_clusters:
        try:
            ids[cluster.name], counts = await _counts(settings, cluster)
            partitions |= counts
        except BrokerError as error:
            if cluster.name is None or when_away is None:
                raise
            when_away(error)
    return _equal(settings, partitions), ids


def _equal(settings: Settings, partitions: Mapping[str, int | None]) -> int:
    """The partitions of all topics; BrokerError where one is missing or they are not equal."""
    key = "sources" if settings.reads_sources else "kafka.topics"
    if missing := [name for name, count in partitions.items() if count is None]:
        raise BrokerError(
            f"no topic {', '.join(map(repr, missing))}: create it (`streamer produce --create "
            f"PARTITIONS` creates missing topics), or correct {key}"
        )
    if len(set(partitions.values())) != 1:
        raise BrokerError(
            f"topics need equal partition counts; they have {dict(partitions)}: recreate them with "
            f"equal counts, or name others in {key}"
        )
    return next(count for count in partitions.values() if count is not None)


@dataclass(frozen=True)
class Readable:
    """What can be read of the topics. ``count``: partitions of the state; ``unread``: topic → why
    nothing of it is read, or not all of it, and what to do; ``left_out``: those of which nothing
    is; ``away``: cluster → why it cannot be reached; ``cluster_ids``: of the others, the id that
    Kafka itself has for them."""

    count: int
    unread: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    away: Mapping[str, str] = field(default_factory=dict)
    cluster_ids: ClusterIds = field(default_factory=dict)


async def readable(
    settings: Settings, stored: int | None, away: Mapping[str, str] = MappingProxyType({})
) -> Readable:
    """What can be read by a state of so many partitions; None where it has not begun.

    A topic that is missing, or has fewer partitions than the state, is left out; of one that has
    more the others are not read. ``away``: cluster → why it cannot be reached, as far as that is
    known. BrokerError where that of ``[kafka]`` cannot, or nothing can be read.
    """
    away, unread = dict(away), dict[str, str]()
    partitions, ids = dict[str, int | None](), dict[str | None, str]()
    for cluster in settings.read_clusters:
        name = cluster.name
        if name is None or name not in away:
            try:
                ids[name], there = await _counts(settings, cluster)
                partitions |= there
                continue
            except BrokerError as error:
                if name is None:
                    raise
                away[name] = f"{cluster.called}: {error}"
        for log in settings.logs_in(cluster):
            unread[log.topic] = f"topic {log.topic} is not read: {away[name]}"
    if stored is None:
        return Readable(_equal(settings, partitions), unread, frozenset(unread), away, ids)
    left_out = unread.keys() | {
        t for t, count in partitions.items() if count is None or count < stored
    }
    for topic, count in partitions.items():
        if (why := _why_unread(topic, count, stored)) is not None:
            unread[topic] = why
    if len(left_out) == len(settings.logs):
        counts = {count for count in partitions.values() if count is not None}
        if len(counts) == 1:  # all of them were recreated
            require_count(stored, counts.pop())
        raise BrokerError("; ".join(dict.fromkeys(unread.values())))
    return Readable(stored, unread, frozenset(left_out), away, ids)


def _why_unread(topic: str, count: int | None, stored: int) -> str | None:
    """Why not all of a topic is read.

    >>> _why_unread("web", 4, 2)[:48]
    'partitions 2 to 3 of topic web are not read: the'
    """
    if count is None:
        return f"topic {topic} is not read: it does not exist; create it with {stored} partitions"
    if count < stored:
        return (
            f"topic {topic} is not read: it has {count} partitions, the state has {stored}; "
            f"recreate it with {stored}"
        )
    if count == stored:
        return None
    which = f"partitions {stored} to {count - 1}" if count > stored + 1 else f"partition {stored}"
    are = "are" if count > stored + 1 else "is"
    return (
        f"{which} of topic {topic} {are} not read: the state has {stored} partitions, and their "
        f"number cannot be changed in place; recreate the topic with {stored}, or start anew with "
        "another redis.prefix and another kafka.group"
    )


async def _counts(settings: Settings, cluster: Cluster) -> tuple[str, dict[str, int | None]]:
    """The id of a cluster; full name → partitions of each topic that is read of it, None where it
    is missing."""
    logs = settings.logs_in(cluster)
    async with admin_client(cluster.connection, cluster.section) as client:
        described = await partitions_of(client, [log.plain for log in logs])
        found = await cluster_id(client)
    return found, {
        log.topic: len(described[log.plain]) if log.plain in described else None for log in logs
    }


async def cluster_id(client: Any) -> str:
    """The id of the cluster of an admin client; "" where its brokers do not say it."""
    return (await client.describe_cluster()).get("cluster_id") or ""


def require_count(stored: int, count: int) -> None:
    """StoreError where the state began with another number of partitions."""
    if stored != count:
        raise StoreError(
            f"the state has {stored} partitions, the topics have {count}; it cannot be changed in "
            "place, as users would be in other partitions: recreate the topics as they were, or "
            "start anew with another redis.prefix and another kafka.group"
        )
