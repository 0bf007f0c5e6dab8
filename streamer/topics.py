"""What Kafka says about our topics."""

from __future__ import annotations

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from streamer.config import Kafka
from streamer.errors import BrokerError
from streamer.events import KINDS
from streamer.kafka import client_settings


async def partition_counts(kafka: Kafka) -> dict[str, int]:
    """Partitions of each of the four topics; BrokerError where Kafka or a topic is missing."""
    names = [str(getattr(kafka.topics, kind)) for kind in KINDS]
    client = AIOKafkaAdminClient(**client_settings(kafka))
    try:
        await client.start()
        found = await client.describe_topics(names)
    except (KafkaError, OSError) as error:
        raise BrokerError(f"cannot reach Kafka at {kafka.brokers}: {error}") from error
    finally:
        await client.close()
    counts = {t["topic"]: len(t["partitions"]) for t in found if not t["error_code"]}
    missing = [name for name in names if name not in counts]
    if missing:
        raise BrokerError(f"no topic {missing[0]!r} at {kafka.brokers}: create it, or set its name")
    return counts
