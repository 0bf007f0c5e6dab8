"""SASL/SCRAM over TLS, and client certificates, to a real Kafka: what works, and each refusal."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streamer.cli import main
from streamer.settings.event_fields import KINDS
from streamer.settings.model import Topics
from streamer.testing.embedded import HOST, EmbeddedRedis, free_port
from tests.support.fixtures import (
    LEAVES_OPEN,
    LIMITED,
    LIMITED_PASSWORD,
    PASSWORD,
    USER,
    Command,
    MakeRedis,
)
from tests.support.lanes import long
from tests.support.secured import Certificates, SecuredKafka
from tests.support.workers import (
    Bench,
    as_toml,
    bench,
    document_of,
    read_topic,
    until,
)

pytestmark = long

LINES = [
    {"type": "impression", "ts": 1_700_000_000_000, "user_id": "u1", "item_id": "i1"},
    {"type": "click", "ts": 1_700_000_001_000, "user_id": "u1", "item_id": "i1"},
    {"type": "conversion", "ts": 1_700_000_002_000, "user_id": "u1", "item_id": "i1", "value": 2},
    {"type": "click", "ts": 1_700_000_001_000, "user_id": "u2", "item_id": ""},
]
"""The last one is refused: a dead letter."""


def sasl(made: Certificates, **more: str) -> dict[str, str]:
    return {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": USER,
        "ssl_cafile": str(made.ca),
        **more,
    }


def settings_of(
    brokers: str, topics: Topics, redis: EmbeddedRedis, security: Mapping[str, str]
) -> dict[str, Any]:
    document = document_of(brokers, topics, redis.url, f"access-{topics.clicks}", {})
    document["kafka"].update(security)
    return document


def write(folder: Path, document: Mapping[str, Any], lines: list[Any] | None = None) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "events.ndjson").write_text(
        "".join(json.dumps(line) + "\n" for line in lines or LINES)
    )
    path = folder / "streamer.toml"
    path.write_text(as_toml(document))
    return path


async def read_all(made: Bench) -> None:
    """Everything in LINES is counted, and its dead letter in the topic."""

    async def counted() -> bool:
        await made.reader.refresh()
        manifests = made.reader.manifests.values()
        return sum(t.next_offset for m in manifests for t in m.topics.values()) == len(LINES)

    await until(counted, "all records are read", made.said)
    assert sum(m.dead_letters for m in made.reader.manifests.values()) == 1
    accepted = [
        t.counters["accepted"] for m in made.reader.manifests.values() for t in m.topics.values()
    ]
    assert sum(accepted) == len(LINES) - 1


LISTENERS = ["SCRAM-SHA-256, environment", "client certificate"]
"""SCRAM-SHA-512 with a password file is what test_nothing_leaks.py uses."""


@pytest.mark.parametrize("listener", LISTENERS)
async def test_everything_works(
    listener: str,
    secured: SecuredKafka,
    secured_topics: Topics,
    certificates: Certificates,
    make_redis: MakeRedis,
    tmp_path: Path,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    brokers = secured.sasl
    if listener == LISTENERS[0]:
        security = sasl(certificates)
        monkeypatch.setenv("STREAMER_KAFKA__SASL_PASSWORD", PASSWORD)
    else:
        brokers = secured.tls
        pair = certificates.client
        security = {
            "security_protocol": "SSL",
            "ssl_cafile": str(certificates.ca),
            "ssl_certfile": str(pair.cert),
            "ssl_keyfile": str(pair.key),
        }
    document = settings_of(brokers, secured_topics, make_redis(appendonly=True), security)
    config = write(tmp_path, document)
    sent = await asyncio.to_thread(command, "produce", tmp_path / "events.ndjson", "-c", config)
    assert sent.code == 0, sent.err
    checked = await asyncio.to_thread(command, "check", "-c", config)
    assert checked.code == 0, checked.out + checked.err
    async with bench(tmp_path / "bench", document) as made:
        made.start_worker()
        await read_all(made)
        await made.stop_workers()
    assert "Unable connect" not in made.said(), made.said()
    (letter,) = await read_topic(secured.brokers, secured_topics.dead_letters, 2)
    assert json.loads(letter.value) == LINES[-1]
    for text in (sent.out, sent.err, checked.out, checked.err, made.said()):
        assert PASSWORD not in text


REFUSALS = {
    "wrong password": "look at kafka.sasl_username and its password",
    "unknown user": "look at kafka.sasl_username and its password",
    "untrusted authority": "unable to get local issuer certificate",
    "wrong host name": "certificate is not valid for '127.0.0.1'",
    "mechanism not offered": "does not offer this kafka.sasl_mechanism",
    "no client certificate": "look at kafka.security_protocol and kafka.ssl_certfile",
    "no TLS": "look at kafka.security_protocol",
    "TLS where there is none": "look at kafka.security_protocol",
    "nobody there": "Connect call failed",
}


def refused(what: str, secured: SecuredKafka, made: Certificates) -> tuple[str, dict[str, str]]:
    """Address and settings."""
    right = sasl(made, sasl_password=PASSWORD)
    changes: dict[str, tuple[str, dict[str, str]]] = {
        "wrong password": (secured.sasl, {**right, "sasl_password": "kafka-wrong-password"}),
        "unknown user": (secured.sasl, {**right, "sasl_username": "nobody"}),
        "untrusted authority": (secured.sasl, {**right, "ssl_cafile": str(made.other_ca)}),
        "wrong host name": (secured.misnamed, right),
        "mechanism not offered": (secured.sasl, {**right, "sasl_mechanism": "PLAIN"}),
        "no client certificate": (
            secured.tls,
            {"security_protocol": "SSL", "ssl_cafile": str(made.ca)},
        ),
        "no TLS": (secured.sasl, {}),
        "TLS where there is none": (secured.brokers, right),
        "nobody there": (f"{HOST}:{free_port()}", right),
    }
    return changes[what]


@LEAVES_OPEN
@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_is_one_line_and_ends(
    what: str,
    secured: SecuredKafka,
    certificates: Certificates,
    redis_url: str,
    tmp_path: Path,
    command: Command,
    capsys: pytest.CaptureFixture[str],
) -> None:
    brokers, security = refused(what, secured, certificates)
    document = document_of(brokers, Topics(), redis_url, "access-refused", {})
    document["kafka"].update(security)
    config = write(tmp_path, document)
    said = command("run", "-c", config)
    assert (said.code, said.out) == (1, "")
    lines = [said.line]
    assert main.main(["produce", str(tmp_path / "events.ndjson"), "-c", str(config)]) == 1
    lines.append(capsys.readouterr().err)
    assert main.main(["check", "-c", str(config)]) == 1
    found = capsys.readouterr()
    assert found.err == ""
    lines += [line for line in found.out.splitlines() if line.startswith("error")]
    assert len(lines) == 3
    for line in lines:
        assert REFUSALS[what] in line
        assert f"at kafka.brokers {brokers}" in line
        assert line.strip().count("\n") == 0
        assert "-password" not in line
    gc.collect()


async def test_the_acls_of_the_documentation_are_enough(
    secured: SecuredKafka,
    secured_topics: Topics,
    certificates: Certificates,
    make_redis: MakeRedis,
    tmp_path: Path,
    command: Command,
) -> None:
    """docs/how-to/secure-it.md lists them; a user with fewer is told."""
    security = sasl(certificates, sasl_username=LIMITED, sasl_password=LIMITED_PASSWORD)
    document = settings_of(secured.sasl, secured_topics, make_redis(appendonly=True), security)
    config = write(tmp_path, document)
    names = [getattr(secured_topics, kind) for kind in KINDS]
    letters, group = [secured_topics.dead_letters], [document["kafka"]["group"]]
    await secured.grant("someone-else", "topic", [*names, *letters], "write")
    alone = await asyncio.to_thread(command, "run", "-c", config)
    assert alone.code == 1
    assert "no topic" in alone.line
    await secured.grant(LIMITED, "topic", names, "read", "describe configs")
    await secured.grant(LIMITED, "topic", letters, "write", "describe configs")
    await secured.grant(LIMITED, "group", group, "read")
    plain = {k: v for k, v in document["kafka"].items() if k in ("topics", "group")}
    other = {**document, "kafka": {**plain, "brokers": secured.brokers}}
    anyone = write(tmp_path / "plain", other)
    sent = await asyncio.to_thread(
        command, "produce", anyone.parent / "events.ndjson", "-c", anyone
    )
    assert sent.code == 0, sent.err
    async with bench(tmp_path / "bench", document) as made:
        made.start_worker()
        await read_all(made)
        await made.stop_workers()
    checked = await asyncio.to_thread(command, "check", "-c", config)
    assert checked.code == 0, checked.out + checked.err
