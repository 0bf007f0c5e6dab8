"""Keys of records: the user of a line, and the partition Kafka's default partitioner gives it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import msgspec

from streamer._core import partition_of
from streamer.ingest.record import record_decoder
from streamer.settings import limits
from streamer.settings.model import Settings


class KeyReader:
    """Reads what a line is keyed by, its ``join_id``, else its ``user_id``: of our own shape if it
    can be read whatever else is wrong, of others where the line is an event."""

    def __init__(self, settings: Settings) -> None:
        self._decoder = record_decoder(settings) if settings.reads_sources else None
        names = settings.events.fields
        fields: list[Any] = [(name, str | int | None, None) for name in ("user_id", "join_id")]
        key = msgspec.defstruct("Key", fields, rename=names, gc=False)
        self._quick: msgspec.json.Decoder[Any] = msgspec.json.Decoder(key)

    def read(self, log: str, raw: bytes, record_ms: int) -> bytes | None:
        """The id in UTF-8; None where there is none."""
        if self._decoder is not None:
            event = self._decoder.decode_all(log, raw, timestamp_ms=record_ms)[0]
            return None if isinstance(event, str) else event["key"].encode() or None
        if len(raw) > limits.MAX_RECORD_BYTES:
            return None
        try:
            if not raw.isascii():
                raw.decode()
            found = self._quick.decode(raw)
            for own in (found.join_id, found.user_id):
                if own not in (None, ""):
                    return str(own).encode()
            return None
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None


PARTITIONERS: dict[str, Callable[[bytes, int], int]] = {
    "murmur2": partition_of,
    "crc32": lambda key, n: zlib.crc32(key) % n,
}
"""Java's default, and librdkafka's."""
