"""The client of schema registries."""

from __future__ import annotations

import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from streamer.errors import RegistryError, SettingsError
from streamer.kafka.registry import SchemaRegistry
from streamer.settings.load import parse
from streamer.settings.registry import Registry
from tests.support.registries import PlainRegistry, register
from tests.support.secured import Certificates

SOURCE = {"topics": ["web"], "kind": {"fixed": "click"}}


def test_a_schema_is_asked_for_once_with_all_it_refers_to() -> None:
    with PlainRegistry() as made:
        register(made.url, "place", '"string"', "AVRO")
        to_place = [{"name": "Place", "subject": "place", "version": 1}]
        register(made.url, "a%2Fb", '{"of": "Place"}', "AVRO", to_place)
        both = [{"name": "Item", "subject": "a/b", "version": 1}, *to_place]
        number = register(made.url, "event", '"Item"', "AVRO", both)
        client = SchemaRegistry(Registry(url=made.url + "/"), "avro")
        for _ in range(3):
            text, others = client.schema(number) or ("", [])
            assert text == '"Item"'
            assert dict(others) == {"Item": '{"of": "Place"}', "Place": '"string"'}
        assert len(made.asked) == 3


def test_what_is_missing_is_waited_for_or_refused() -> None:
    with PlainRegistry() as made:
        waiting = SchemaRegistry(Registry(url=made.url), "avro")
        refusing = SchemaRegistry(Registry(url=made.url, unknown="reject"), "avro")
        with pytest.raises(RegistryError, match="has no schema 1: register it, or set"):
            waiting.schema(1)
        assert refusing.schema(1) is None
        register(made.url, "event", "message A {}", "PROTOBUF")
        with pytest.raises(RegistryError, match="schema 1 is PROTOBUF, not AVRO: correct format"):
            waiting.schema(1)
        assert refusing.schema(1) is None
        lost = [{"name": "X", "subject": "none", "version": 4}]
        number = register(made.url, "event", '"X"', "AVRO", lost)
        with pytest.raises(RegistryError, match="no version 4 of 'none'"):
            waiting.schema(number)


def test_answers_of_others_are_errors() -> None:
    with PlainRegistry() as made:
        client = SchemaRegistry(Registry(url=made.url, unknown="reject"), "avro")
        made.status = 503
        with pytest.raises(RegistryError, match="answers 503 Service Unavailable; at 127"):
            client.schema(1)
        made.status = None
        elsewhere = SchemaRegistry(Registry(url=made.url + "/api", unknown="reject"), "avro")
        with pytest.raises(RegistryError, match="answers 404 Not Found; at"):
            elsewhere.schema(1)
        made.schemas[1] = {"hello": "world"}
        with pytest.raises(RegistryError, match="what answers is no schema registry"):
            client.schema(1)
    with pytest.raises(RegistryError, match=r"cannot reach the schema registry: .*refused"):
        client.schema(1)


def test_credentials_are_sent(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    with PlainRegistry() as made:
        number = register(made.url, "event", '"string"', "AVRO")
        made.authorization = f"Basic {base64.b64encode(b'me:s3cret').decode()}"
        basic = Registry(url=made.url, username="me", password_file=str(secret))
        assert SchemaRegistry(basic, "avro").schema(number)
        with pytest.raises(RegistryError, match="answers 401 Unauthorized: look at its cred"):
            SchemaRegistry(Registry(url=made.url), "avro").schema(number)
        made.authorization = "Bearer s3cret"
        bearer = Registry(url=made.url, token_file=str(secret))
        assert SchemaRegistry(bearer, "avro").schema(number)


def test_tls_and_client_certificates(certificates: Certificates) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates.ca))
    context.load_cert_chain(certificates.server.both)
    context.verify_mode = ssl.CERT_REQUIRED
    with PlainRegistry(context) as made:
        made.schemas[1] = {"schema": '"string"'}
        names: dict[str, Any] = {
            "ssl_cafile": str(certificates.ca),
            "ssl_certfile": str(certificates.client.cert),
            "ssl_keyfile": str(certificates.client.key),
        }
        assert SchemaRegistry(Registry(url=made.url, **names), "avro").schema(1)
        other = Registry(url=made.url, **{**names, "ssl_cafile": str(certificates.other_ca)})
        with pytest.raises(RegistryError, match="certificate verify failed"):
            SchemaRegistry(other, "avro").schema(1)
        lost = Registry(url=made.url, **{**names, "ssl_cafile": "/nowhere.pem"})
        with pytest.raises(SettingsError, match=r"cannot use registry\.ssl_cafile: No such file"):
            SchemaRegistry(lost, "avro").schema(1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"format": "xml"}, "format = 'xml': one of json, json-schema, avro, protobuf; at sources"),
        ({"format": "avro"}, "format = 'avro' needs its schemas: add registry"),
        ({"registry": "http://r"}, "format = 'json' needs no registry"),
        ({"format": "avro", "registry": "r:8081"}, "url is none like"),
        ({"format": "avro", "registry": "http://me:x@r"}, "credentials are keys of their own"),
        (
            {"format": "avro", "registry": {"url": "http://r", "unknown": "skip"}},
            "unknown = 'skip': one of wait, reject; at sources[0].registry",
        ),
        ({"format": "avro", "registry": {"url": "http://r", "username": "a"}}, "username needs"),
        (
            {"format": "avro", "registry": {"url": "http://r", "ssl_keyfile": "k"}},
            "ssl_keyfile is set without ssl_certfile",
        ),
    ],
)
def test_wrong_settings_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse({"sources": [{**SOURCE, **given}]})
    assert message in str(error.value)


def test_no_secret_is_shown() -> None:
    table = {"url": "https://r", "username": "me", "password": "s3cret"}
    made = parse({"sources": [{**SOURCE, "format": "avro", "registry": table}]})
    assert "s3cret" not in repr(made)
    assert json.dumps(table) not in repr(made)
