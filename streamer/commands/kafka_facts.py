"""What Kafka says about topics: which exist, their partitions, the settings that matter to us."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from streamer.config import Kafka
from streamer.errors import BrokerError
from streamer.kafka import client_settings

LOG_APPEND_TIME = "LogAppendTime"
_TIMEOUT_MS = 15_000
_ALREADY_EXISTS = 36
_REPLICAS = 3
"""Of a created topic, where there are so many brokers."""


@dataclass(frozen=True)
class TopicFacts:
    """A topic as the broker describes it; ``settings`` may lack what the broker does not know."""

    name: str
    partitions: int
    settings: dict[str, str]

    @property
    def is_stamped_by_broker(self) -> bool:
        """Whether record timestamps are the broker's clock."""
        return self.settings.get("message.timestamp.type") == LOG_APPEND_TIME

    def limit_ms(self, name: str) -> int | None:
        """A duration in milliseconds; None where it is unlimited or unknown."""
        text = self.settings.get(name, "")
        limit = int(text) if text.lstrip("-").isdigit() else -1
        return None if limit < 0 or limit >= 2**62 else limit


def quiet() -> None:
    """Say errors once, in our words: the client would log them, too."""
    for name in ("aiokafka", "kafka", "asyncio"):
        logging.getLogger(name).addHandler(logging.NullHandler())


@contextlib.asynccontextmanager
async def admin_client(kafka: Kafka) -> AsyncIterator[Any]:
    """A connected admin client; BrokerError where Kafka cannot be reached or refuses us."""
    client = AIOKafkaAdminClient(**client_settings(kafka), request_timeout_ms=_TIMEOUT_MS)
    try:
        await client.start()
        yield client
    except (KafkaError, OSError) as error:
        text = str(error) or type(error).__name__
        raise BrokerError(f"cannot use Kafka: {text}; at kafka.brokers {kafka.brokers}") from error
    finally:
        await client.close()


async def topic_facts(client: Any, names: Iterable[str]) -> dict[str, TopicFacts]:
    """Facts of those of the topics that exist. (Asking for one by name could create it.)"""
    existing = set(await client.list_topics())
    wanted = [name for name in names if name in existing]
    if not wanted:
        return {}
    described = await client.describe_topics(wanted)
    partitions = {t["topic"]: len(t["partitions"]) for t in described}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in wanted]
    settings: dict[str, dict[str, str]] = {}
    for answer in await client.describe_configs(resources):
        for code, _, _, name, entries in answer.resources:
            if code == 0:
                settings[name] = {entry[0]: str(entry[1]) for entry in entries}
    return {
        name: TopicFacts(name, partitions.get(name, 0), settings.get(name, {})) for name in wanted
    }


async def create_topics(client: Any, names: Iterable[str], partitions: int) -> None:
    """Create topics that keep their records: retention goes by record timestamps, which are those
    of the events, so Kafka's default would delete an older log as soon as it is written."""
    keep = {"retention.ms": "-1", "retention.bytes": "-1"}
    brokers = len((await client.describe_cluster())["brokers"])
    replicas = min(_REPLICAS, brokers)
    topics = [NewTopic(name, partitions, replicas, topic_configs=keep) for name in names]
    answer = await client.create_topics(topics)
    for name, code, *message in answer.topic_errors:
        if code not in (0, _ALREADY_EXISTS):
            raise BrokerError(f"cannot create topic {name!r}: error {code} {message}")
