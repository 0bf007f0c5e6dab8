"""Samples of topics in the wire format of a schema registry: the texts that their records stand
for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from streamer.encoding.schema_ids import CONFLUENT_BITS, schema_head
from streamer.errors import UsageError
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.record import record_decoder
from streamer.kafka.registry import registry_at
from streamer.settings.load import parse
from streamer.settings.registry import Registry


def as_texts(samples: Sequence[SampledTopic], url: str | None) -> list[SampledTopic]:
    """The samples, with texts in place of encoded records. ``url``: of the schema registry;
    UsageError where it is needed, RegistryError where it does not have a schema."""
    return [_as_texts(sample, url) if _is_encoded(sample) else sample for sample in samples]


def _is_encoded(sample: SampledTopic) -> bool:
    """Whether most records begin as the wire format does."""
    return 2 * len(_schema_ids(sample)) > len(sample.records)


def _schema_ids(sample: SampledTopic) -> list[int]:
    """Those of its records that have one."""
    return [head[0] for record in sample.records if (head := schema_head(record.value))]


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
            isinstance(msgspec.json.decode(record.value[head[1] if head else 0 :]), dict)
            for record in records
            for head in [schema_head(record.value)]
        )
    except (ValueError, RecursionError):  # msgspec's and Unicode's errors are ValueErrors
        return False


def _format_of(sample: SampledTopic, url: str | None) -> str:
    """The format of most records, by their schemas."""
    ids = set(_schema_ids(sample))
    if url is None:
        is_glue = any(number >> CONFLUENT_BITS for number in ids)
        found, example = ("Confluent's", "http://HOST:8081")
        if is_glue:
            found, example = ("AWS Glue's", "glue://REGION")
        raise UsageError(
            f"the records of topic {sample.topic!r} begin with a {3 * is_glue} byte, as in {found} "
            f"wire format: name the schema registry with --registry {example}"
        )
    registry, formats = registry_at(Registry(url=url)), Counter[str]()
    for schema_id in ids:
        formats[registry.format_of(schema_id)] += 1
    ((most_common, _),) = formats.most_common(1)
    return most_common
