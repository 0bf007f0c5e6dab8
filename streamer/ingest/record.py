"""Single records, decoded as workers decode them: by the core."""

from __future__ import annotations

import msgspec

from streamer import _core
from streamer._core import LineStamper, RecordDecoder, Rekeyer
from streamer.ingest.hash_key import FIXED_KEY, HashKey
from streamer.ingest.spec import records_spec
from streamer.kafka.registry import schemas_of
from streamer.settings import limits
from streamer.settings.event_fields import LINE_TYPES, REFUND
from streamer.settings.model import Settings


def record_decoder(settings: Settings, key: HashKey = FIXED_KEY) -> RecordDecoder:
    """The core's decoder of single records of all logs. It asks for schemas: RegistryError where
    one cannot be got."""
    return RecordDecoder(_decoding_spec(settings, key), schemas_of(settings))


def of_texts(settings: Settings) -> Settings:
    """The settings for records that are JSON, whatever their format on Kafka: those of files."""
    sources = [msgspec.structs.replace(s, format="json", registry=None) for s in settings.sources]
    return msgspec.structs.replace(settings, sources=tuple(sources))


def rekeyer(settings: Settings, partitions: int) -> Rekeyer:
    """What rewrites the records of all logs, which have other shapes than ours, for topics of so
    many partitions."""
    spec = _decoding_spec(settings, FIXED_KEY)
    return Rekeyer(spec, partitions, limits.MAX_INFLATED_BYTES)


def line_stamper(settings: Settings, topic: str) -> LineStamper:
    """What says of the lines of one file, called like ``topic``, which log each belongs to, and its
    record timestamp. A line of our own shape belongs to the log of its ``type``, if that can be
    read whatever else is wrong; where there are sources, to the topic, if it is one of them, else
    to the first that knows what it is."""
    spec, logs = _decoding_spec(settings, FIXED_KEY), list(settings.logs)
    if settings.reads_sources:
        return LineStamper(spec, log=topic if topic in logs else None)
    kinds = [*LINE_TYPES.items(), (REFUND, LINE_TYPES["conversion"])]
    types = [(line, logs.index(kind)) for line, kind in kinds if kind in logs]
    return LineStamper(spec, (settings.events.fields.get("type", "type"), types))


def _decoding_spec(settings: Settings, key: HashKey) -> bytes:
    spec = {
        "hash_key": key,
        "dimensions": settings.kept_fields,
        "feedback_kinds": settings.feedback_kinds,
        "records": records_spec(settings),
        "logs": list(settings.logs),
    }
    return msgspec.json.encode(spec)


IGNORED = "ignored"
"""What is said of a record that is known and not to be counted."""


def reason_of_no_topic(value: bytes) -> str:
    """Why a line of a file belongs to no topic: it cannot be read, or has no known ``type``."""
    return _core.reason_of_no_topic(value, limits.MAX_RECORD_BYTES)
