"""The topics that are read, each under the name that labels and stored state know it by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streamer.settings.event_fields import KINDS


@dataclass(frozen=True, slots=True)
class Log:
    """A topic that is read. ``kinds``: which events it holds."""

    name: str
    topic: str
    kinds: tuple[str, ...]


def logs_of(topics: Mapping[str, str]) -> dict[str, Log]:
    """Name → log, of all topics that are read: those of ``[kafka.topics]`` by kind, named by the
    kind of their events.

    >>> from streamer.settings.model import Settings
    >>> logs_of(Settings().kafka.topics.by_kind)["clicks"]
    Log(name='clicks', topic='clicks', kinds=('clicks',))
    """
    return {kind: Log(kind, topics[kind], (kind,)) for kind in KINDS}
