"""Keys of records: the user of a line, and the partition Kafka's default partitioner gives it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from streamer.ingest.record import record_decoder
from streamer.settings import limits
from streamer.settings.model import Settings

_M, _MASK = 0x5BD1E995, 0xFFFFFFFF


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


@lru_cache(maxsize=1 << 16)
def partition_of(key: bytes | None, partitions: int) -> int:
    """The partition of a key by Kafka's default partitioner (Java's); 0 without a key.

    >>> [partition_of(key, 4) for key in (b"u1", b"u2", None)]
    [0, 2, 0]
    """
    return 0 if key is None else (murmur2(key) & 0x7FFFFFFF) % partitions


PARTITIONERS: dict[str, Callable[[bytes, int], int]] = {
    "murmur2": partition_of,
    "crc32": lambda key, n: zlib.crc32(key) % n,
}
"""Java's default, and librdkafka's."""


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's Java client.

    >>> murmur2(b"21") - 2**32  # one of the Java client's own test values
    -973932308
    """
    h = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _M & _MASK
        h = h * _M & _MASK ^ (k ^ k >> 24) * _M & _MASK
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15
