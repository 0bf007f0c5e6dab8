"""What Kafka says about topics: which exist, their partitions, the settings that matter to us."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streamer.errors import BrokerError
from streamer.kafka.topics import partitions_of

LOG_APPEND_TIME = "LogAppendTime"
_ALREADY_EXISTS = 36
_REPLICAS = 3
"""Of a created topic, where there are so many brokers."""


@dataclass(frozen=True)
class TopicDescription:
    """A topic as the broker describes it; ``settings`` may lack what the broker does not know."""

    name: str
    partitions: int
    settings: dict[str, str]
    replicas: int = 1
    """Of the partition that has the fewest."""

    @property
    def is_stamped_by_broker(self) -> bool:
        """Whether record timestamps are the broker's clock."""
        return self.settings.get("message.timestamp.type") == LOG_APPEND_TIME

    @property
    def is_compacted(self) -> bool:
        """Whether Kafka keeps only the last record of each key."""
        return "compact" in self.settings.get("cleanup.policy", "")

    @property
    def deletes(self) -> bool:
        """Whether Kafka deletes old records."""
        return "delete" in self.settings.get("cleanup.policy", "delete")

    def limit(self, name: str) -> int | None:
        """A number of its settings (bytes, milliseconds); None where it is unlimited or unknown."""
        text = self.settings.get(name, "")
        limit = int(text) if text.lstrip("-").isdigit() else -1
        return None if limit < 0 or limit >= 2**62 else limit


def quiet() -> None:
    """Say errors once, in our words: the client would log them, too."""
    for name in ("aiokafka", "kafka", "asyncio"):
        logging.getLogger(name).addHandler(logging.NullHandler())


async def describe_topics(client: Any, names: Iterable[str]) -> dict[str, TopicDescription]:
    """Facts of those of the topics that exist."""
    described = await partitions_of(client, names)
    if not described:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in described]
    settings: dict[str, dict[str, str]] = {}
    for answer in await client.describe_configs(resources):
        for code, _, _, name, entries in answer.resources:
            if code == 0:
                settings[name] = {entry[0]: str(entry[1]) for entry in entries}
    return {
        name: TopicDescription(
            name,
            len(partitions),
            settings.get(name, {}),
            min((len(p["replicas"]) for p in partitions), default=1),
        )
        for name, partitions in described.items()
    }


async def broker_count(client: Any) -> int:
    """Brokers of the cluster."""
    return len((await client.describe_cluster())["brokers"])


async def create_topics(
    client: Any, names: Iterable[str], partitions: int, retention_ms: int = -1
) -> None:
    """Create topics that keep their records (-1: for ever): retention goes by record timestamps,
    which are those of the events, so Kafka's default would delete an older log as soon as it is
    written."""
    keep = {"retention.ms": str(retention_ms), "retention.bytes": "-1"}
    replicas = min(_REPLICAS, await broker_count(client))
    topics = [NewTopic(name, partitions, replicas, topic_configs=keep) for name in names]
    answer = await client.create_topics(topics)
    for name, code, *message in answer.topic_errors:
        if code not in (0, _ALREADY_EXISTS):
            raise BrokerError(f"cannot create topic {name!r}: error {code} {message}")
