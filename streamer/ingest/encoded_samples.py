"""Samples of topics in Confluent's wire format: the texts that their records stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from streamer.errors import UsageError
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.record import record_decoder
from streamer.kafka.registry import SchemaRegistry
from streamer.settings.load import parse
from streamer.settings.registry import Registry

_HEAD_BYTES = 5
"""A 0 byte, and the id of the schema."""


def as_texts(samples: Sequence[SampledTopic], url: str | None) -> list[SampledTopic]:
    """The samples, with texts in place of encoded records. ``url``: of the schema registry;
    UsageError where it is needed, RegistryError where it does not have a schema."""
    return [_as_texts(sample, url) if _is_encoded(sample) else sample for sample in samples]


def _is_encoded(sample: SampledTopic) -> bool:
    """Whether most records begin as the wire format does."""
    begun = sum(r.value[:1] == b"\0" and len(r.value) > _HEAD_BYTES for r in sample.records)
    return 2 * begun > len(sample.records)


def _as_texts(sample: SampledTopic, url: str | None) -> SampledTopic:
    data_format = "json-schema" if _are_objects(sample.records) else None
    if data_format is None:
        data_format = _format_of(sample, url)
    registry = {"registry": url} if data_format != "json-schema" else {}
    source = {
        "topics": [sample.topic],
        "kind": {"fixed": "click"},
        "fields": {"ts": "ts", "item_id": "item_id"},
        "format": data_format,
    }
    decoder = record_decoder(parse({"sources": [{**source, **registry}]}))
    texts = [(record, decoder.text(sample.topic, record.value)) for record in sample.records]
    return SampledTopic(
        sample.topic,
        [replace(record, value=json or b"") for record, json in texts],
        data_format,
        registry.get("registry"),
    )


def _are_objects(records: Sequence[FoundRecord]) -> bool:
    """Whether what follows the id is JSON."""
    try:
        return all(
            isinstance(msgspec.json.decode(record.value[_HEAD_BYTES:]), dict) for record in records
        )
    except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
        return False


def _format_of(sample: SampledTopic, url: str | None) -> str:
    """The format of most records, by their schemas."""
    if url is None:
        raise UsageError(
            f"the records of topic {sample.topic!r} begin with a 0 byte, as in Confluent's wire "
            "format: name the schema registry with --registry http://HOST:8081"
        )
    registry, formats = SchemaRegistry(Registry(url=url), ""), Counter[str]()
    for schema_id in {int.from_bytes(r.value[1:_HEAD_BYTES]) for r in sample.records}:
        formats[registry.format_of(schema_id)] += 1
    ((most_common, _),) = formats.most_common(1)
    return most_common
