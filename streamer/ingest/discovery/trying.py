"""Tries settings on the records of samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.record import IGNORED, of_texts, record_decoder
from streamer.settings.model import Settings

MOST_REFUSED = 0.01
"""Share of the records that are not ignored of which settings are proposed still."""

_UNREADABLE = ("json", "too_large", "too_deep")


@dataclass
class Tried:
    """What the records are under some settings."""

    records: int = 0
    total: int = 0
    """Records with events."""
    accepted: Counter[str] = field(default_factory=Counter)
    """Kind → events; a record may be several."""
    ignored: int = 0
    refused: list[tuple[str, FoundRecord, str]] = field(default_factory=list)
    """(log, record, reason) of each that is none."""

    @property
    def reasons(self) -> Counter[str]:
        """Reason → records refused for it."""
        return Counter(reason for _, _, reason in self.refused)

    @property
    def are_too_many_refused(self) -> bool:
        """Whether more are refused than settings may refuse of their own sample; what cannot be
        read under any settings is not theirs."""
        broken = sum(self.reasons[reason] for reason in _UNREADABLE)
        most = MOST_REFUSED * (self.records - self.ignored - broken)
        return len(self.refused) - broken > most


def tried(settings: Settings, samples: Sequence[SampledTopic]) -> Tried:
    """What the settings make of the records of topics that they read. Of files without sources the
    log is what `type` says, as it is when they are replayed."""
    made = Tried()
    for log, record, events in decoded_samples(of_texts(settings), samples):
        made.records += 1
        reasons = [event for event in events if isinstance(event, str)]
        refused = next((reason for reason in reasons if reason != IGNORED), None)
        if refused is not None:
            made.refused.append((log, record, refused))
        made.ignored += len(reasons) == len(events) and refused is None
        made.total += len(reasons) < len(events)
        made.accepted.update(event["kind"] for event in events if not isinstance(event, str))
    return made


def decoded_samples(
    settings: Settings, samples: Sequence[SampledTopic]
) -> Iterator[tuple[str, FoundRecord, list[Any]]]:
    """(log, record, its events, each a dict or the reason why it is none) of the records of topics
    that are read, which are texts."""
    decoder = record_decoder(settings)
    for sample in samples:
        if settings.reads_sources and sample.topic not in settings.logs:
            continue
        logs = (sample.topic,) if settings.reads_sources else tuple(settings.logs)
        newest_ms = 0  # what stands for the timestamp of lines of files
        for record in sample.records:
            beside = (record.key, record.encoded_headers, record.timestamp_ms or newest_ms)
            answers = [(log, decoder.decode_all(log, record.value, *beside)) for log in logs]
            log, events = next((x for x in answers if not isinstance(x[1][0], str)), answers[0])
            times = (event["event_ms"] for event in events if not isinstance(event, str))
            newest_ms = max([newest_ms, *times])
            yield log, record, events
