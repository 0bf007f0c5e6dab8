"""The topics that are read, each under the name that labels and stored state know it by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamer.settings.event_fields import KINDS

if TYPE_CHECKING:
    from streamer.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Log:
    """A topic that is read. ``kinds``: which events it holds."""

    name: str
    topic: str
    kinds: tuple[str, ...]


def logs_of(settings: Settings) -> dict[str, Log]:
    """Name → log, of all topics that are read: those of ``[kafka.topics]``, named by the kind of
    their events.

    >>> from streamer.settings.load import parse
    >>> logs_of(parse({"kafka": {"topics": {"clicks": "ui-clicks"}}}))["clicks"]
    Log(name='clicks', topic='ui-clicks', kinds=('clicks',))
    """
    by_kind = settings.kafka.topics.by_kind
    return {kind: Log(kind, by_kind[kind], (kind,)) for kind in KINDS}
