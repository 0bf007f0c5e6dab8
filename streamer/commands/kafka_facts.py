"""What Kafka says about topics: which exist, their partitions, the settings that matter to us."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from streamer.errors import BrokerError
from streamer.topics import partitions_of

LOG_APPEND_TIME = "LogAppendTime"
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


async def topic_facts(client: Any, names: Iterable[str]) -> dict[str, TopicFacts]:
    """Facts of those of the topics that exist. (Asking for one by name could create it.)"""
    partitions = await partitions_of(client, names)
    if not partitions:
        return {}
    wanted = list(partitions)
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in wanted]
    settings: dict[str, dict[str, str]] = {}
    for answer in await client.describe_configs(resources):
        for code, _, _, name, entries in answer.resources:
            if code == 0:
                settings[name] = {entry[0]: str(entry[1]) for entry in entries}
    return {
        name: TopicFacts(name, count, settings.get(name, {})) for name, count in partitions.items()
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
