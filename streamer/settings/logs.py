"""The topics that are read, each under the name that labels and stored state know it by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamer.settings.event_fields import KINDS
from streamer.settings.sources import KIND_OF_RULE, Source

if TYPE_CHECKING:
    from streamer.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Log:
    """A topic that is read. ``kinds``: which events it holds; ``source``: which of ``sources`` says
    how they look, None for our own shape."""

    name: str
    topic: str
    kinds: tuple[str, ...]
    source: int | None = None


def logs_of(settings: Settings) -> dict[str, Log]:
    """Name → log, of all topics that are read: those of ``[[sources]]``, named as they are; those
    of ``[kafka.topics]``, named by the kind of their events, where there are no sources, or where
    ``streamer rekey`` has written them.

    >>> from streamer.settings.load import parse
    >>> logs_of(parse({"kafka": {"topics": {"clicks": "ui-clicks"}}}))["clicks"]
    Log(name='clicks', topic='ui-clicks', kinds=('clicks',), source=None)
    >>> logs_of(parse({"sources": [{"topics": ["web"], "preset": "segment"}]}))
    {'web': Log(name='web', topic='web', kinds=('impressions', 'clicks', 'conversions'), source=0)}
    """
    by_kind = settings.kafka.topics.by_kind
    if not settings.sources or settings.kafka.rekeyed:
        return {kind: Log(kind, by_kind[kind], (kind,)) for kind in KINDS}
    return {
        topic: Log(topic, topic, kinds_of(source, topic), i)
        for i, source in enumerate(settings.sources)
        for topic in source.topics
    }


def kinds_of(source: Source, topic: str) -> tuple[str, ...]:
    """Which events a topic of a source holds."""
    kind = source.kind
    if kind.fixed is not None:
        return (KIND_OF_RULE[kind.fixed],)
    by_topic = kind.field is None and kind.header is None
    rules = kind.rules.items()
    return tuple(name for name, values in rules if (topic in values if by_topic else values))
