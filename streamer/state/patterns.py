"""Topics in place of patterns, by the number of partitions that the stored state has."""

from __future__ import annotations

import contextlib

from streamer.errors import StreamerError
from streamer.kafka.patterns import has_patterns, with_topics
from streamer.settings.model import Settings
from streamer.state.reader import manifests_of
from streamer.state.redis.store import RedisStore


async def resolve(
    settings: Settings, *, may_be_away: bool = True
) -> tuple[Settings, dict[str, str]]:
    """The settings with topics in place of patterns; and what fits one but is not read, with why.

    Topics that were counted stand for those of a cluster that cannot be asked, which is a
    BrokerError with ``may_be_away=False``. So is a pattern that fits no topic.
    """
    left_out: dict[str, str] = {}
    if not has_patterns(settings):
        return settings, left_out
    store, stored = RedisStore(settings.redis), None
    counted: dict[str, str] | None = {} if may_be_away else None
    try:
        with contextlib.suppress(StreamerError):  # whoever needs it says so
            stored = await store.partitions()
            if counted is not None:
                for manifest in (await manifests_of(store, stored or 0))[0].values():
                    counted |= {log: topic.topic for log, topic in manifest.topics.items()}
    finally:
        await store.close()
    return await with_topics(settings, stored, left_out.__setitem__, counted), left_out
