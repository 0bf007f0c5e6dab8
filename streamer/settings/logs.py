"""The topics that are read, each under the name that labels and stored state know it by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamer.settings.sources import KIND_OF_RULE, Source


@dataclass(frozen=True, slots=True)
class Log:
    """A topic that is read. ``kinds``: which events it holds; ``source``: which of ``sources`` says
    how they look, None for our own shape."""

    name: str
    topic: str
    kinds: tuple[str, ...]
    source: int | None = None


def logs_of(sources: Sequence[Source], topics: Mapping[str, str]) -> dict[str, Log]:
    """Name → log, of all topics that are read: those of ``[[sources]]``, named as they are; else
    those of ``[kafka.topics]`` (kind → topic), named by the kind of their events.

    >>> logs_of([], {"clicks": "ui-clicks"})
    {'clicks': Log(name='clicks', topic='ui-clicks', kinds=('clicks',), source=None)}
    >>> from streamer.settings.load import parse
    >>> logs_of(parse({"sources": [{"topics": ["web"], "preset": "segment"}]}).sources, {})
    {'web': Log(name='web', topic='web', kinds=('impressions', 'clicks', 'conversions'), source=0)}
    """
    if not sources:
        return {kind: Log(kind, topic, (kind,)) for kind, topic in topics.items()}
    return {
        topic: Log(topic, topic, kinds_of(source, topic), i)
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
