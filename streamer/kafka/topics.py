"""What Kafka says about our topics: which exist, and with how many partitions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streamer.errors import BrokerError, StoreError
from streamer.kafka.client import Refusals, client_settings
from streamer.settings.clusters import MAIN, Cluster, Connection
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
        text = refusals.reason(error)
        place = f"{section}.brokers {kafka.brokers}"
        raise BrokerError(f"cannot use Kafka: {text}; at {place}") from error
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


async def partition_count(
    settings: Settings, when_away: Callable[[BrokerError], None] | None = None
) -> int:
    """Partitions of the topics that are read; BrokerError where one is missing or they are not
    equal, or a cluster cannot be asked.

    ``when_away``: called with that error for another cluster than that of ``[kafka]``, whose topics
    are then not looked at.
    """
    key = "sources" if settings.reads_sources else "kafka.topics"
    counts: dict[str, int] = {}
    for cluster in settings.read_clusters:
        try:
            found = await _counts(settings, cluster)
        except BrokerError as error:
            if cluster.name is None or when_away is None:
                raise
            when_away(error)
            continue
        missing = [name for name, count in found.items() if count is None]
        if missing:
            raise BrokerError(
                f"no topic {', '.join(map(repr, missing))} at {cluster.connection.brokers}: create "
                "it (`streamer produce --create PARTITIONS` creates missing topics), or correct "
                f"{key}"
            )
        counts |= {name: count for name, count in found.items() if count is not None}
    if len(set(counts.values())) != 1:
        raise BrokerError(
            f"topics need equal partition counts; they have {counts}: recreate them with equal "
            f"counts, or name others in {key}"
        )
    return next(iter(counts.values()))


async def _counts(settings: Settings, cluster: Cluster) -> dict[str, int | None]:
    """Full name → partitions of each topic that is read of a cluster, None where it is missing."""
    logs = settings.logs_in(cluster)
    async with admin_client(cluster.connection, cluster.section) as client:
        described = await partitions_of(client, [log.plain for log in logs])
    return {
        log.topic: len(described[log.plain]) if log.plain in described else None for log in logs
    }


async def cluster_ids(settings: Settings) -> dict[str | None, str]:
    """Cluster → the id that Kafka itself has for it; those that cannot be asked are left out."""
    found: dict[str | None, str] = {}
    for cluster in settings.read_clusters:
        with contextlib.suppress(BrokerError):
            async with admin_client(cluster.connection, cluster.section) as client:
                found[cluster.name] = await cluster_id(client)
    return found


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
