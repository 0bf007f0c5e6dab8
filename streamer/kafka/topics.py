"""What Kafka says about our topics: which exist, and with how many partitions."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streamer.errors import BrokerError, StoreError
from streamer.kafka.client import Refusals, client_settings
from streamer.settings.model import Kafka, Settings

_TIMEOUT_MS = 15_000


@contextlib.asynccontextmanager
async def admin_client(kafka: Kafka) -> AsyncIterator[Any]:
    """A connected admin client; BrokerError where Kafka cannot be reached or refuses us."""
    client = AIOKafkaAdminClient(**client_settings(kafka), request_timeout_ms=_TIMEOUT_MS)
    refusals = Refusals()
    try:
        with refusals:
            await client.start()
        yield client
    except (KafkaError, OSError) as error:
        text = refusals.reason(error)
        raise BrokerError(f"cannot use Kafka: {text}; at kafka.brokers {kafka.brokers}") from error
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
    equal."""
    kafka = settings.kafka
    names = [log.topic for log in settings.logs.values()]
    key = "sources" if settings.reads_sources else "kafka.topics"
    async with admin_client(kafka) as client:
        described = await partitions_of(client, names)
    counts = {name: len(partitions) for name, partitions in described.items()}
    missing = [name for name in names if name not in counts]
    if missing:
        raise BrokerError(
            f"no topic {', '.join(map(repr, missing))} at {kafka.brokers}: create it (`streamer "
            f"produce --create PARTITIONS` creates missing topics), or correct {key}"
        )
    if len(set(counts.values())) != 1:
        raise BrokerError(
            f"topics need equal partition counts; they have {counts}: recreate them with equal "
            f"counts, or name others in {key}"
        )
    return counts[names[0]]


def require_count(stored: int, count: int) -> None:
    """StoreError where the state began with another number of partitions."""
    if stored != count:
        raise StoreError(
            f"the state has {stored} partitions, the topics have {count}; it cannot be changed in "
            "place, as users would be in other partitions: recreate the topics as they were, or "
            "start anew with another redis.prefix and another kafka.group"
        )
