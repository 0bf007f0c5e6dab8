"""What settings read of the records of samples, as the core says it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from streamer._core import RecordDecoder
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.lookup import parsed
from streamer.ingest.record import of_texts, record_decoder
from streamer.settings.event_fields import TYPE_OF_KIND
from streamer.settings.model import Settings


@dataclass(frozen=True, slots=True)
class ValueRead:
    """What stands where a field is looked for."""

    form: int
    """Which of the forms of the field it has, of those in one list or in none."""
    value: Any
    ms: int | None
    """Of a time that could be read."""


@dataclass(frozen=True, slots=True)
class EventRead:
    """An event of a record, or what would be one."""

    reason: str | None
    """Why it is none."""
    kind: str | None
    """impression, …; None where nothing says it."""
    text: str | None
    """What says the kind."""
    values: dict[str, list[ValueRead]]
    """By our name of the field."""


def events_read(decoder: RecordDecoder, log: str, record: FoundRecord) -> list[EventRead]:
    """How the events of a record of a log were read."""
    events = list[EventRead]()
    for reason, kind, text, traced, _ in decoder.trace(log, record.value, *record.beside):
        values: dict[str, list[ValueRead]] = {}
        for name, form, json, ms in traced:
            values.setdefault(name, []).append(ValueRead(form, parsed(json), ms))
        events.append(EventRead(reason, TYPE_OF_KIND.get(kind or ""), text, values))
    return events


def records_of(
    settings: Settings, samples: Sequence[SampledTopic]
) -> dict[tuple[int, str], list[EventRead]]:
    """(number of a source, kind) → its events."""
    events: dict[tuple[int, str], list[EventRead]] = {}
    decoder = record_decoder(of_texts(settings))
    for sample in samples:
        log = settings.logs.get(sample.topic)
        if log is None or not settings.reads_sources:
            continue
        for record in sample.records:
            for event in events_read(decoder, sample.topic, record):
                if event.kind:
                    events.setdefault((log.source, event.kind), []).append(event)
    return events
