"""Topics in place of patterns, by the number of partitions that the stored state has."""

from __future__ import annotations

import contextlib

from streamer.errors import StoreError
from streamer.kafka.patterns import has_patterns, with_topics
from streamer.settings.model import Settings
from streamer.state.redis.store import RedisStore


async def resolve(settings: Settings) -> tuple[Settings, dict[str, str]]:
    """The settings with topics in place of patterns; and those that fit one but are not read, with
    why. BrokerError where a pattern fits none, or Kafka cannot be asked."""
    left_out: dict[str, str] = {}
    if not has_patterns(settings):
        return settings, left_out
    store, stored = RedisStore(settings.redis), None
    try:
        with contextlib.suppress(StoreError):  # whoever needs it says so
            stored = await store.partitions()
    finally:
        await store.close()
    return await with_topics(settings, stored, left_out.__setitem__), left_out
