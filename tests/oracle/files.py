"""Lines of a file → records, by the file rule."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from streamer.settings.model import Settings

from .decoding import decode
from .parsing import MAX_DEPTH, MAX_RECORD_BYTES, BrokenError, Whole, depth, parse
from .shape import EXPOSURES, LINE_TYPES, Record
from .times import moment_ms
from .values import MAX_ID_BYTES


def records_of_file(
    lines: Iterable[bytes],
    settings: Settings,
    partitions: int = 1,
    now_ms: int | None = None,
    *,
    strays: str | None = None,
) -> list[Record]:
    """One record a line (newline removed); ``now_ms`` is the wall clock at the start.

    A line's record timestamp is the largest ``ts`` of an event so far that is not beyond the wall
    clock (0 before any): a line that is refused moves no clock. Local times are near that of the
    line before. A line that cannot be read, or has no known type, is on no topic; or, as where
    producers write to Kafka, on the topic ``strays``.
    """
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    running_ms = 0
    offsets: Counter[tuple[str, int]] = Counter()
    records = []
    for line in lines:
        raw = line.removesuffix(b"\n")
        topic, ts, key_id = fields_of(raw, settings, running_ms)
        if topic is not None and ts is not None and running_ms < ts <= now_ms:
            running_ms = ts if is_event(topic, raw, settings, running_ms) else running_ms
        if (topic or strays) is None:
            continue
        key = (topic or strays or "", partition_of(key_id, partitions))
        records.append(Record(*key, offsets[key], running_ms, raw))
        offsets[key] += 1
    return records


def records_of_log(
    lines: Iterable[bytes],
    settings: Settings,
    partitions: int = 1,
    now_ms: int | None = None,
) -> list[Record]:
    """The same lines as careless producers write them to Kafka: those that are on no topic of a
    file are among the impressions."""
    return records_of_file(lines, settings, partitions, now_ms, strays="impressions")


def is_event(topic: str, raw: bytes, settings: Settings, near_ms: int) -> bool:
    """Whether a record is an event of its topic."""
    try:
        decode(topic, raw, settings, near_ms)
    except BrokenError:
        return False
    return True


def strays_of_file(lines: Iterable[bytes], settings: Settings) -> list[tuple[bytes, str]]:
    """The lines that are on no topic, each with the reason; too long ones are cut."""
    found = []
    for line in lines:
        raw = line.removesuffix(b"\n")
        if fields_of(raw, settings)[0] is None:
            try:
                parse(raw)
                found.append((raw, "type"))
            except BrokenError as reason:
                found.append((raw[: MAX_RECORD_BYTES + 1], str(reason)))
    return found


def fields_of(
    raw: bytes, settings: Settings, near_ms: int = 0
) -> tuple[str | None, int | None, str | None]:
    """(kind, event_ms, what it is keyed by) of a line, each None where it cannot be read."""
    names = settings.events.fields
    try:
        value = parse(raw)
    except BrokenError:
        return None, None, None
    line_type = value.get(names.get("type", "type"))
    ids = [value.get(names.get(name, name)) for name in ("join_id", "user_id")]
    ids = [] if depth(value) > MAX_DEPTH else ids  # nobody reads on there
    try:
        event_ms = moment_ms(value.get(names.get("ts", "ts")), "ts", settings, near_ms)
    except BrokenError:
        event_ms = None
    topic = LINE_TYPES.get(line_type) if isinstance(line_type, str) else None
    return (
        None if topic == EXPOSURES and settings.kafka.topics.exposures is None else topic,
        event_ms,
        key_of(ids),
    )


def key_of(ids: Iterable[Any]) -> str | None:
    """The first id that a record has; None where one that is no id stands there."""
    texts = [found.text if isinstance(found, Whole) else found for found in ids]
    if any(text is not None and not isinstance(text, str) for text in texts):
        return None
    if any(len(text.encode()) > MAX_ID_BYTES for text in texts if text):
        return None
    return next((text for text in texts if text), None)


def partition_of(key: str | None, partitions: int) -> int:
    """Kafka's default partitioner (Java's): murmur2 of the key; without a key partition 0."""
    if key is None:
        return 0
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's Java client."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15
