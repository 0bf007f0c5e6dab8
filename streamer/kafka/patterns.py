"""Topics that sources name by a pattern: which there are."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from streamer.errors import BrokerError
from streamer.kafka.topics import admin_client
from streamer.settings.model import Settings
from streamer.settings.sources import Source, full_name, is_pattern


def has_patterns(settings: Settings) -> bool:
    """Whether a source names topics by a pattern."""
    return any(is_pattern(log.topic) for log in settings.logs.values())


async def with_topics(settings: Settings) -> Settings:
    """The settings with the topics that exist in place of patterns; BrokerError where a pattern
    fits none, or Kafka cannot be asked."""
    if not has_patterns(settings):
        return settings
    existing: dict[str | None, list[str]] = {}
    for cluster in settings.read_clusters:
        if any(is_pattern(log.topic) for log in settings.logs_in(cluster)):
            async with admin_client(cluster.connection, cluster.section) as client:
                existing[cluster.name] = sorted(await client.list_topics())
    return resolved(settings, existing)


def resolved(settings: Settings, existing: Mapping[str | None, list[str]]) -> Settings:
    """The settings with topics in place of patterns; ``existing``: cluster → its topics. A topic
    belongs to the first source whose pattern it fits; the topic of dead letters and Kafka's own
    (``__``) belong to none.

    >>> from streamer.settings.load import parse
    >>> some = parse({"sources": [{"topics": ["^web-"], "kind": {"fixed": "click"}}]})
    >>> resolved(some, {None: ["__web-", "web-a", "web-b", "x-web-"]}).sources[0].topics
    ('web-a', 'web-b')
    """
    taken = {full_name(t, source.cluster) for source in settings.sources for t in source.topics}
    taken.add(settings.kafka.topics.dead_letters)
    sources: list[Source] = []
    for i, source in enumerate(settings.sources):
        topics: list[str] = []
        for topic in source.topics:
            if not is_pattern(topic):
                topics.append(topic)
                continue
            there = existing.get(source.cluster, ())
            found = [t for t in there if re.search(topic, t) and not t.startswith("__")]
            topics += [t for t in found if full_name(t, source.cluster) not in taken]
            taken.update(full_name(t, source.cluster) for t in found)
        if not topics:
            where = "" if source.cluster is None else f" of cluster {source.cluster!r}"
            raise BrokerError(
                f"no topic{where} fits {', '.join(source.topics)}; at sources[{i}].topics: create "
                "one, or correct the pattern"
            )
        changes = {"name": source.called, "topics": tuple(topics)}
        sources.append(msgspec.structs.replace(source, **changes))
    return msgspec.structs.replace(settings, sources=tuple(sources))
