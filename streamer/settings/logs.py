"""The topics that are read, each under the name that labels and stored state know it by.

A topic of another cluster than that of ``[kafka]`` is called ``topic@cluster`` everywhere; only a
client of that cluster is told the plain name. No topic's name has an ``@``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.settings.sources import KIND_OF_RULE, Source, full_name


@dataclass(frozen=True, slots=True)
class Log:
    """A topic that is read. ``topic``: its full name; ``kinds``: which events it holds;
    ``source``: which of ``sources`` says how they look, None for our own shape; ``cluster``: where
    it is, None for that of ``[kafka]``."""

    name: str
    topic: str
    kinds: tuple[str, ...]
    source: int | None = None
    cluster: str | None = None

    @property
    def plain(self) -> str:
        """The topic's name in its own cluster."""
        return self.topic if self.cluster is None else self.topic.removesuffix(f"@{self.cluster}")


def logs_of(sources: Sequence[Source], topics: Mapping[str, str]) -> dict[str, Log]:
    """Name → log, of all topics that are read: those of ``[[sources]]``, named as they are; else
    those of ``[kafka.topics]`` (kind → topic), named by the kind of their events.

    >>> logs_of([], {"clicks": "ui-clicks"})["clicks"].topic
    'ui-clicks'
    >>> from streamer.settings.load import parse
    >>> web, app = {"topics": ["web"]}, {"topics": ["app"], "cluster": "eu"}
    >>> some = [source | {"preset": "segment"} for source in (web, app)]
    >>> other = {"eu": {"brokers": "eu:9092"}}
    >>> found = logs_of(parse({"sources": some, "clusters": other}).sources, {})
    >>> [(log.name, log.topic, log.plain, log.source) for log in found.values()]
    [('web', 'web', 'web', 0), ('app@eu', 'app@eu', 'app', 1)]
    """
    if not sources:
        return {kind: Log(kind, topic, (kind,)) for kind, topic in topics.items()}
    return {
        (name := full_name(topic, source.cluster)): Log(
            name, name, kinds_of(source, topic), i, source.cluster
        )
        for i, source in enumerate(sources)
        for topic in source.topics
    }


def kinds_of(source: Source, topic: str) -> tuple[str, ...]:
    """Which events a topic of a source holds."""
    kind = source.kind
    if kind.fixed is not None:
        return (KIND_OF_RULE[kind.fixed],)
    by_topic = kind.field is None and kind.header is None
    found = {
        name: [rule for value, rule in rules.items() if value == topic or not by_topic]
        for name, rules in kind.rules.items()
    }
    if any(rule.shown for rule in found["clicks"]):
        found["impressions"] = found["clicks"]
    return tuple(name for name, rules in found.items() if rules)
