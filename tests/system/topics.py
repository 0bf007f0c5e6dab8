"""Settings of topics, changed on a running broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType


async def configure(brokers: str, names: Sequence[str], settings: Mapping[str, str]) -> None:
    """Settings of topics."""
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    try:
        kind = ConfigResourceType.TOPIC
        resources = [ConfigResource(kind, n, dict(settings)) for n in names]
        answers = await admin.alter_configs(resources)
        assert all(code == 0 for answer in answers for code, *_ in answer.resources), answers
    finally:
        await admin.close()
