"""Judges single records as workers do."""

from __future__ import annotations

from streamer.ingest.record import IGNORED, record_decoder
from streamer.settings.model import Settings


class RecordJudge:
    """Judges records of all logs by the given settings."""

    def __init__(self, settings: Settings) -> None:
        self._decoder = record_decoder(settings)

    def refusal(self, log: str, value: bytes | None, record_ms: int = 0) -> str | None:
        """The reason why a record is rejected; None where it is valid."""
        events = self._decoder.decode_all(log, value, timestamp_ms=record_ms)
        refused = (one for one in events if isinstance(one, str) and one != IGNORED)
        return next(refused, None)
