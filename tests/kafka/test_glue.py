"""AWS Glue's schema registry: its client, over exchanges as AWS documents them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from streamer.errors import RegistryError, SchemaMissingError, SettingsError, UsageError
from streamer.ingest.discovery.shapes import FoundRecord, SampledTopic
from streamer.ingest.encoded_samples import as_texts
from streamer.ingest.record import record_decoder
from streamer.ingest.rejections import Explainer
from streamer.kafka.registry import GlueRegistry, SchemaRegistry, registry_at
from streamer.settings.load import parse
from streamer.settings.registry import Registry
from tests.support.encoded import AVRO, PROTOBUF, SOURCE, as_avro, as_json, as_protobuf, events
from tests.support.glue import ENVIRONMENT, REGION, PlainGlue, glue_wire
from tests.support.registries import PlainRegistry
from tests.support.required import require_package

AT_MS = 1_700_000_000_000
ADDRESS = Registry(url=f"glue://{REGION}")


@pytest.fixture
def glue(monkeypatch: pytest.MonkeyPatch) -> Iterator[PlainGlue]:
    require_package("botocore", extra="aws")
    registry_at.cache_clear()
    with PlainGlue() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        yield made
    registry_at.cache_clear()


def test_a_version_is_asked_for_once_and_signed(glue: PlainGlue) -> None:
    version = glue.register('"string"', "AVRO")
    client = registry_at(ADDRESS, "avro")
    for _ in range(3):
        assert client.schema(version.int) == ('"string"', [])
    assert glue.asked == [str(version)]
    assert "Credential=AKIDEXAMPLE/" in glue.signed[0]
    assert f"/{REGION}/glue/aws4_request" in glue.signed[0]


def test_throttled_requests_are_sent_again(glue: PlainGlue) -> None:
    version = glue.register('"string"', "AVRO")
    glue.errors = [(400, "ThrottlingException", "Rate exceeded")]
    assert registry_at(ADDRESS, "avro").schema(version.int)
    assert glue.asked == [str(version)] * 2


def test_what_is_missing_is_told_apart_from_what_cannot_be_asked(
    glue: PlainGlue, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, lost = registry_at(ADDRESS, "avro"), UUID(int=1 << 100)
    with pytest.raises(SchemaMissingError, match=f"has no schema {lost}: register it; at {REGION}"):
        client.schema(lost.int)
    version = glue.register("message A {}", "PROTOBUF")
    with pytest.raises(SchemaMissingError, match=f"schema {version} is PROTOBUF, not AVRO"):
        client.schema(version.int)
    with pytest.raises(SchemaMissingError, match="schema 7 is one of Confluent's registry"):
        client.schema(7)
    glue.errors = [(400, "AccessDeniedException", "User is not authorized")]
    with pytest.raises(RegistryError, match=r"not authorized: allow its role glue:GetSchemaVers"):
        client.schema(lost.int)
    glue.errors = [(500, "InternalServiceException", "try again")] * 3
    with pytest.raises(
        RegistryError, match=f"cannot ask the schema registry: .*at glue://{REGION}"
    ):
        client.schema(lost.int)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(RegistryError, match="locate credentials: give this process a role"):
        GlueRegistry(ADDRESS, "avro").schema(lost.int)
    assert ENVIRONMENT.keys() <= glue.environment.keys()


def test_ids_of_glue_are_unknown_to_another_registry() -> None:
    with PlainRegistry() as made:
        client = SchemaRegistry(Registry(url=made.url), "avro")
        with pytest.raises(SchemaMissingError, match="is one of AWS Glue: write registry = 'glue:"):
            client.schema(1 << 100)
        assert made.asked == []


def decoder_of(data_format: str) -> Any:
    source = {"topics": ["web"], "format": data_format, **SOURCE}
    registry = {} if data_format == "json-schema" else {"registry": ADDRESS.url}
    return parse({"sources": [{**source, **registry}]})


@pytest.mark.parametrize("is_compressed", [False, True])
@pytest.mark.parametrize("data_format", ["avro", "protobuf", "json-schema"])
def test_all_formats_are_the_same_events(
    data_format: str, is_compressed: bool, glue: PlainGlue
) -> None:
    def payload(event: dict[str, Any]) -> bytes:
        if data_format == "protobuf":
            return bytes([0]) + as_protobuf(event)[2:]
        return (as_avro if data_format == "avro" else as_json)(event)

    text = PROTOBUF if data_format == "protobuf" else json.dumps(AVRO)
    version = glue.register(text, data_format.removesuffix("-schema").upper())
    decoder = record_decoder(decoder_of(data_format))
    plain = record_decoder(parse({"sources": [{"topics": ["web"], **SOURCE}]}))
    for event in events(100, AT_MS):
        value = glue_wire(version, payload(event), is_compressed=is_compressed)
        right = plain.decode_all("web", as_json(event))[0]
        assert not isinstance(right, str)
        assert str(decoder.decode_all("web", value)[0]) == str(right)
    assert glue.asked == [str(version)] * (data_format != "json-schema")


def test_schemas_change_from_record_to_record(glue: PlainGlue) -> None:
    wider = {**AVRO, "fields": [{"name": "page", "type": "string"}, *AVRO["fields"]]}
    first, second = (glue.register(json.dumps(schema), "AVRO") for schema in (AVRO, wider))
    decoder = record_decoder(decoder_of("avro"))
    for event in events(20, AT_MS):
        old = decoder.decode_all("web", glue_wire(first, as_avro(event)))
        new = as_avro({**event, "page": "home"}, wider)
        assert str(decoder.decode_all("web", glue_wire(second, new))) == str(old)
    assert glue.asked == [str(first), str(second)]


def test_what_does_not_fit_is_rejected(glue: PlainGlue) -> None:
    version, lost = glue.register(json.dumps(AVRO), "AVRO"), UUID(int=1 << 100)
    settings = decoder_of("avro")
    for value, found in (
        (glue_wire(lost, b"\0\0\0"), f"21 bytes, with the schema id {lost}"),
        (glue_wire(version, b"\xff"), f"19 bytes, with the schema id {version}"),
        (b"\3\1" + version.bytes, f"18 bytes, with the schema id {version}"),
        (b"\3\0", "2 bytes that begin with 03"),
    ):
        assert record_decoder(settings).decode_all("web", value)[0] == "schema"
        assert Explainer(settings).explain("web", value, "schema").found == found


@pytest.mark.parametrize(
    ("registry", "message"),
    [
        ("glue://", "url is none like 'glue://eu-west-1'"),
        ("glue://EU/x", "url is none like 'glue://eu-west-1'"),
        ({"url": ADDRESS.url, "token_file": "t"}, "token_file is none of AWS Glue's registry"),
        ({"url": ADDRESS.url, "unknown_after": "soon"}, "unknown_after; at sources[0].registry"),
    ],
)
def test_wrong_settings_are_named(registry: Any, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse({"sources": [{"topics": ["web"], **SOURCE, "format": "avro", "registry": registry}]})
    assert message in str(error.value)


def test_what_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "botocore", raising=False)
    with pytest.raises(
        SettingsError, match=r"needs the Python package botocore: install .*\[aws\]"
    ):
        GlueRegistry(ADDRESS, "avro")


def test_samples_are_read_by_their_schemas(glue: PlainGlue) -> None:
    version, some = glue.register(json.dumps(AVRO), "AVRO"), events(5, AT_MS)
    values = [glue_wire(version, as_avro(event), is_compressed=True) for event in some]
    sample = SampledTopic("web", [FoundRecord(value) for value in values])
    with pytest.raises(UsageError, match=r"a 3 byte, as in AWS Glue's .*--registry glue://REGION"):
        as_texts([sample], None)
    (found,) = as_texts([sample], ADDRESS.url)
    assert (found.format, found.registry) == ("avro", ADDRESS.url)
    assert [json.loads(record.value)["at"] for record in found.records] == [e["at"] for e in some]
