"""Records as they would be counted, for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from streamer.ingest.discovery.shapes import SampledTopic
from streamer.ingest.record import of_texts, record_decoder, rekeyer
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Settings

_ALWAYS_MS = 2**62


def as_counted(settings: Settings, samples: Sequence[SampledTopic], most: int) -> Iterator[str]:
    """Some records that are events, in our own shape: of each kind in turn."""
    settings = of_texts(settings)
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for sample in samples:
        for kind, line in _events(settings, sample):
            if len(by_kind[kind]) < most:
                by_kind[kind].append(line)
    shown = 0
    for i in range(most):
        for lines in by_kind.values():
            if i < len(lines) and shown < most:
                shown += 1
                yield lines[i]


def _events(settings: Settings, sample: SampledTopic) -> Iterator[tuple[str, str]]:
    if not settings.reads_sources:
        decoder = record_decoder(settings)
        for record in sample.records:
            for log in KINDS:
                if not isinstance(decoder.decode(log, record.value), str):
                    yield log, record.value.decode()
        return
    if sample.topic not in settings.logs:
        return
    made, offset = rekeyer(settings, 1), np.array([0])
    for i, record in enumerate(sample.records):
        times, place = np.array([record.timestamp_ms]), (sample.topic, i)
        beside = [(record.key, record.encoded_headers)]
        values = (offset, times, [record.value], beside, 0, _ALWAYS_MS)
        written, *_ = made.records(sample.topic, place, *values)
        own = f"{sample.topic}/{i}/0"
        for kind, _, events in written:
            for _, _, value in events:
                event = msgspec.json.decode(value).items()
                said = {name: x for name, x in event if x != own}  # without the id made for it
                yield KINDS[kind], msgspec.json.encode(said).decode()
