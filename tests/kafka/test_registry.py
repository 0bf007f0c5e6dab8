"""The client of schema registries."""

from __future__ import annotations

import base64
import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from streamer.errors import RegistryError, SchemaMissingError, SettingsError
from streamer.kafka.registry import SchemaRegistry
from streamer.settings import limits
from streamer.settings.load import parse
from streamer.settings.registry import Registry
from tests.support.registries import PlainRegistry, register
from tests.support.secured import Certificates

FIELDS = {"ts": "at", "item_id": "item"}
SOURCE = {"topics": ["web"], "kind": {"fixed": "click"}, "fields": FIELDS}


def test_a_schema_is_asked_for_once_with_all_it_refers_to() -> None:
    with PlainRegistry() as made:
        register(made.url, "place", '"string"', "AVRO")
        to_place = [{"name": "Place", "subject": "place", "version": 1}]
        register(made.url, "a%2Fb", '{"of": "Place"}', "AVRO", to_place)
        both = [{"name": "Item", "subject": "a/b", "version": 1}, *to_place]
        number = register(made.url, "event", '"Item"', "AVRO", both)
        client = SchemaRegistry(Registry(url=made.url + "/"), "avro")
        for _ in range(3):
            text, others = client.schema(number)
            assert text == '"Item"'
            assert dict(others) == {"Item": '{"of": "Place"}', "Place": '"string"'}
        assert len(made.asked) == 3


def test_what_is_missing_is_told_apart_from_what_cannot_be_asked() -> None:
    with PlainRegistry() as made:
        client = SchemaRegistry(Registry(url=made.url), "avro")
        with pytest.raises(SchemaMissingError, match="has no schema 1: register it; at 127"):
            client.schema(1)
        register(made.url, "event", "message A {}", "PROTOBUF")
        with pytest.raises(SchemaMissingError, match="schema 1 is PROTOBUF, not AVRO: correct"):
            client.schema(1)
        lost = [{"name": "X", "subject": "none", "version": 4}]
        number = register(made.url, "event", '"X"', "AVRO", lost)
        with pytest.raises(RegistryError, match="no version 4 of 'none'") as raised:
            client.schema(number)
        assert not isinstance(raised.value, SchemaMissingError)


def test_answers_of_others_are_errors() -> None:
    with PlainRegistry() as made:
        client = SchemaRegistry(Registry(url=made.url), "avro")
        made.status = 503
        with pytest.raises(RegistryError, match="answers 503 Service Unavailable; at 127"):
            client.schema(1)
        made.status = None
        elsewhere = SchemaRegistry(Registry(url=made.url + "/api"), "avro")
        with pytest.raises(RegistryError, match="answers 404 Not Found; at"):
            elsewhere.schema(1)
        made.schemas[1] = {"hello": "world"}
        with pytest.raises(RegistryError, match="what answers is no schema registry"):
            client.schema(1)
    with pytest.raises(RegistryError, match=r"cannot reach the schema registry: .*refused"):
        client.schema(1)


class Elsewhere(BaseHTTPRequestHandler):
    """Sends whoever asks to another place, which it keeps what it is told of; the schema 2 comes
    byte by byte, for ever."""

    told: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        if self.path.endswith("/2"):
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b" ")
                    time.sleep(0.05)
        if self.path.startswith(("/other", "http")):
            self.told.append(self.headers.get("Authorization"))
        self.send_response(302)
        self.send_header("Location", f"/other{self.path}")
        self.end_headers()

    def do_CONNECT(self) -> None:
        self.told.append(f"CONNECT {self.path}, {self.headers.get('Authorization')}")
        self.send_error(502)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def elsewhere() -> Iterator[str]:
    Elsewhere.told.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_no_redirect_takes_the_credentials_elsewhere(elsewhere: str) -> None:
    client = SchemaRegistry(Registry(url=elsewhere, username="me", password="s3cret"), "avro")
    with pytest.raises(RegistryError, match=r"answers 302 Found: .* no redirect is followed; at"):
        client.schema(1)
    assert Elsewhere.told == []


def test_an_answer_has_one_deadline_and_holds_up_no_other(
    elsewhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REGISTRY_SECONDS", 1.0)
    client = SchemaRegistry(Registry(url=elsewhere), "avro")

    def ask_slowly() -> None:
        with contextlib.suppress(RegistryError):
            client.schema(2)

    slow = threading.Thread(target=ask_slowly)
    slow.start()
    begun = time.monotonic()
    with pytest.raises(RegistryError, match="answers 302"):
        client.schema(1)
    assert slow.is_alive(), "the other one is still under way"
    with pytest.raises(RegistryError, match="no whole answer within 1 s"):
        client.schema(2)
    assert time.monotonic() - begun < 5
    slow.join()


def test_a_schema_is_bounded_with_what_it_refers_to() -> None:
    with PlainRegistry() as made:
        long = json.dumps("x" * (limits.MAX_SCHEMA_BYTES // 2))
        for name in ("a", "b"):
            register(made.url, name, long, "AVRO")
        both = [{"name": name, "subject": name, "version": 1} for name in ("a", "b")]
        number = register(made.url, "event", '"a"', "AVRO", both)
        client = SchemaRegistry(Registry(url=made.url), "avro")
        with pytest.raises(RegistryError, match="more than 1,048,576 bytes with those that it"):
            client.schema(number)


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


def test_no_proxy_of_the_environment_gets_the_credentials(
    elsewhere: str, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, elsewhere)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    login = {"username": "reader", "password": "secret"}
    with PlainRegistry() as made:
        made.schemas[1] = {"schema": '"string"'}
        made.authorization = "Basic cmVhZGVyOnNlY3JldA=="
        assert SchemaRegistry(Registry(url=made.url, **login), "avro").schema(1)
    assert Elsewhere.told == []
    tls = Registry(url="https://registry.example:443", ssl_cafile=str(certificates.ca), **login)
    with pytest.raises(RegistryError, match="cannot reach"):
        SchemaRegistry(tls, "avro").schema(1)
    assert Elsewhere.told == ["CONNECT registry.example:443, None"]


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
            {"format": "avro", "registry": {"url": "http://r", "unknown_after": "soon"}},
            "unknown_after; at sources[0].registry",
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
