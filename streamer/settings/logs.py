"""The topics that are read, each under the name that labels and stored state know it by.

A topic of another cluster than that of ``[kafka]`` is called ``topic@cluster`` everywhere; only a
client of that cluster is told the plain name. No topic's name has an ``@``. Stored state identifies
a log by the id of its cluster and the plain name, so that settings may call the cluster otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.settings.event_fields import LINE_TYPES
from streamer.settings.sources import Source, full_name

ClusterIds = Mapping[str | None, str]
"""Cluster (None: that of ``[kafka]``) → the id that Kafka itself has for it."""
NO_IDS: ClusterIds = {}
"""Where Kafka is not asked: events come from files."""


@dataclass(frozen=True, slots=True)
class Log:
    """A topic that is read. ``name``: the topic of a source, the kind of events of one in our own
    shape; ``topic``: its full name; ``kinds``: which events it holds; ``source``: which of the
    sources says how they look; ``cluster``: where it is, None for that of ``[kafka]``."""

    name: str
    topic: str
    kinds: tuple[str, ...]
    source: int
    cluster: str | None = None

    @property
    def plain(self) -> str:
        """The topic's name in its own cluster."""
        return self.topic if self.cluster is None else self.topic.removesuffix(f"@{self.cluster}")


def logs_of(sources: Sequence[Source]) -> dict[str, Log]:
    """Name → log, of all topics of sources.

    >>> from streamer.settings.load import parse
    >>> web, app = {"topics": ["web"]}, {"topics": ["app"], "cluster": "eu"}
    >>> some = [source | {"preset": "segment"} for source in (web, app)]
    >>> other = {"eu": {"brokers": "eu:9092"}}
    >>> logs = logs_of(parse({"sources": some, "clusters": other}).sources)
    >>> [(log.name, log.plain, log.source) for log in logs.values()]
    [('web', 'web', 0), ('app@eu', 'app', 1)]
    """
    logs = (_log(i, source, topic) for i, source in enumerate(sources) for topic in source.topics)
    return {log.name: log for log in logs}


def _log(number: int, source: Source, topic: str) -> Log:
    full, kinds = full_name(topic, source.cluster), kinds_of(source, topic)
    return Log(kinds[0] if source.is_own else full, full, kinds, number, source.cluster)


def kinds_of(source: Source, topic: str) -> tuple[str, ...]:
    """Which events a topic of a source may hold."""
    said = {kind for kind, _ in source.kind.rules_of_topic(topic)}
    return tuple(kind for kind in LINE_TYPES.values() if kind in said)
