"""Topics that sources name by a pattern: which there are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import msgspec

from streamer.errors import BrokerError
from streamer.kafka.topics import admin_client, partitions_of
from streamer.settings.clusters import Cluster
from streamer.settings.model import Settings
from streamer.settings.sources import Source, full_name, is_pattern

_LeftOut = Callable[[str, str], None]
"""Called with the name of what is left out, and why."""
_LEFT_OUT = (
    "topic {topic} of a pattern is not read: it has {n} partitions, the others have {count}; "
    "recreate it with {count}, or correct the pattern"
)


def _in_silence(name: str, why: str) -> None:
    """Nobody asks what is left out."""


def has_patterns(settings: Settings) -> bool:
    """Whether a source names topics by a pattern."""
    return any(is_pattern(log.topic) for log in settings.logs.values())


async def with_topics(
    settings: Settings,
    stored: int | None = None,
    when_left_out: _LeftOut = _in_silence,
    counted: Mapping[str, str] | None = None,
) -> Settings:
    """The settings with the topics that exist in place of patterns; BrokerError where a pattern
    fits none, or Kafka cannot be asked.

    A topic with another number of partitions than the state (``stored``), or than most, where that
    has not begun, is left out. ``counted``: name of a log → its topic, of those that the state
    has; they stand for the topics of a cluster that cannot be asked. Where it has none of another
    cluster than that of ``[kafka]``, patterns of that cluster are left out.
    """
    if not has_patterns(settings):
        return settings
    counts: dict[str | None, dict[str, int]] = {}
    away: dict[str | None, str] = {}
    for cluster in settings.read_clusters:
        patterns = [log.plain for log in settings.logs_in(cluster)]
        if not any(map(is_pattern, patterns)):
            continue
        try:
            counts[cluster.name] = await _partitions(cluster, patterns)
        except BrokerError as error:
            if counted is None:
                raise
            topics = {t for log, t in counted.items() if log == full_name(t, cluster.name)}
            counts[cluster.name] = dict.fromkeys(_fitting(patterns, topics), stored or 0)
            if not counts[cluster.name] and cluster.name is None:
                raise
            away[cluster.name] = f"{cluster.called}: {error}"
    count = stored or _usual(
        [n for counts_of_cluster in counts.values() for n in counts_of_cluster.values()]
    )
    existing: dict[str | None, list[str]] = {}
    for name, counts_of_cluster in counts.items():
        existing[name] = sorted(t for t, n in counts_of_cluster.items() if count in (None, n))
        for topic, n in counts_of_cluster.items():
            if count not in (None, n):
                full = full_name(topic, name)
                when_left_out(full, _LEFT_OUT.format(topic=full, n=n, count=count))
    return resolved(settings, existing, away, when_left_out)


async def _partitions(cluster: Cluster, patterns: list[str]) -> dict[str, int]:
    """Topic → its partitions, of the topics of a cluster that fit; BrokerError if it is away."""
    async with admin_client(cluster.connection, cluster.section) as client:
        described = await partitions_of(client, _fitting(patterns, await client.list_topics()))
    return {topic: len(partitions) for topic, partitions in described.items()}


def _fitting(patterns: list[str], topics: Iterable[str]) -> list[str]:
    return [topic for topic in topics if any(_fits(pattern, topic) for pattern in patterns)]


def _fits(pattern: str, topic: str) -> bool:
    """Whether a topic is, or may be, one that is read."""
    if not is_pattern(pattern):
        return pattern == topic
    return re.search(pattern, topic) is not None and not topic.startswith("__")


def _usual(counts: list[int]) -> int | None:
    """What most have; None where it is not clear.

    >>> _usual([2, 3, 2]), _usual([2, 3]), _usual([])
    (2, None, None)
    """
    most = Counter(counts).most_common(2)
    if not most or (len(most) == 2 and most[0][1] == most[1][1]):
        return None
    return most[0][0]


def resolved(
    settings: Settings,
    existing: Mapping[str | None, list[str]],
    away: Mapping[str | None, str] = MappingProxyType({}),
    when_left_out: _LeftOut = _in_silence,
) -> Settings:
    """The settings with topics in place of patterns; ``existing``: cluster → its topics. A topic
    belongs to the first source whose pattern it fits; the topic of dead letters and Kafka's own
    (``__``) belong to none. A source without topics is left out where its cluster is ``away``
    (cluster → why), and is a BrokerError otherwise.

    >>> from streamer.settings.load import parse
    >>> fields = {"ts": "at", "item_id": "id"}
    >>> some = {"topics": ["^web-"], "kind": {"fixed": "click"}, "fields": fields}
    >>> some = parse({"sources": [some]})
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
            fitting = [t for t in there if re.search(topic, t) and not t.startswith("__")]
            topics += [t for t in fitting if full_name(t, source.cluster) not in taken]
            taken.update(full_name(t, source.cluster) for t in fitting)
        if not topics and source.cluster in away:
            for pattern in source.topics:
                full = full_name(pattern, source.cluster)
                when_left_out(full, f"topics {full} are not read: {away[source.cluster]}")
            continue
        if not topics:
            where = "" if source.cluster is None else f" of cluster {source.cluster!r}"
            raise BrokerError(
                f"no topic{where} fits {', '.join(source.topics)}; at sources[{i}].topics: create "
                "one, or correct the pattern"
            )
        changes = {"name": source.called, "topics": tuple(topics)}
        sources.append(msgspec.structs.replace(source, **changes))
    return msgspec.structs.replace(settings, sources=tuple(sources))
