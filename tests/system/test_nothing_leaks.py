"""No command, page, log or stored byte shows a secret; and no page or log shows an id.

One whole system runs with every secret set, reads events whose ids are easily recognised, and
everything that it prints, serves and stores is searched.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from streamer.cli import main
from streamer.errors import SettingsError
from streamer.ingest.hash_key import HashKey, key_text
from streamer.settings.load import load, parse
from streamer.settings.model import ExporterSettings, Kafka, Redis, Settings, Topics
from streamer.state import codec
from streamer.state.manifest import Texts, decode
from streamer.state.redis.store import RedisStore
from streamer.testing.embedded import HOST, EmbeddedRedis, create_topics, free_port
from tests.server.test_access import basic
from tests.support.fixtures import COMMAND_SECONDS, LEAVES_OPEN, PASSWORD, USER
from tests.support.lanes import long
from tests.support.secured import Certificates, SecuredKafka, secured_redis
from tests.support.workers import as_toml, until

pytestmark = long

REDIS_PASSWORD, EXPORTER_PASSWORD = "redis-leak-password", "exporter-leak-password"
SECRETS = (PASSWORD, REDIS_PASSWORD, EXPORTER_PASSWORD)
MARK = "zqx"
"""All ids begin with it, and nothing else has it."""
START_MS = 1_700_000_000_000


BROKEN = (f'{{"uid": "{MARK}-cut', f"{MARK} no JSON", f'"{MARK}"')
"""Lines that are on no topic."""


def events() -> list[str]:
    """Good ones, and each kind of bad one, with ids in all fields that may hold them."""
    ids = {"uid": f"{MARK}-user", "request_id": f"{MARK}-request", "event_id": f"{MARK}-event"}
    lines: list[dict[str, Any]] = []
    for n in range(40):
        own = {name: f"{value}-{n}" for name, value in ids.items()}
        at = {**own, "ts": START_MS + n * 1000, "variant": "A", "url": f"/{MARK}/{n}"}
        item = {"sku": f"{MARK}-item-{n}"}
        session = {"session_id": f"{MARK}-session-{n}", "action": "view"}
        lines += [
            {"type": "impression", **at, **item, "position": 1},
            {"type": "click", **at, **item, "event_id": f"{MARK}-c{n}"},
            {"type": "click", **at, **item, "event_id": f"{MARK}-c{n}"},
            {"type": "click", **at, **item, "event_id": f"{MARK}-f{n}", "feedback": f"{MARK}-kind"},
            {"type": "conversion", **at, **item, "value": 1},
            {"type": "session", **at, **session},
        ]
    bad = {**ids, "type": "impression", "ts": START_MS + 40_000, "sku": f"{MARK}-bad"}
    lines += [
        {**bad, "feedback": MARK, "item_category": [MARK]},
        {**bad, "position": f"{MARK}-position"},
        {**bad, "sku": [MARK]},
        {**bad, "ts": START_MS + 10**10},
        {**bad, "ts": START_MS - 10**9},
        {**bad, f"{MARK}-unknown": MARK, "uid": MARK * 200},
    ]
    return [*map(json.dumps, lines), *BROKEN]


class System:
    """What is needed to run it, and what it showed."""

    hash_key: HashKey

    def __init__(self, folder: Path, document: Mapping[str, Any], environment: dict[str, str]):
        self.config = folder / "streamer.toml"
        self.config.write_text(as_toml(document))
        self.files = folder / "events.ndjson"
        self.files.write_text("\n".join(events()) + "\n")
        self.environment = {**os.environ, **environment}
        self.settings = load(self.config, environment)
        self.output: dict[str, str] = {}

    def command(self, *arguments: object) -> int:
        words = [str(a) for a in arguments]
        done = subprocess.run(
            [sys.executable, "-m", "streamer", *words, "--debug"],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        self.output[" ".join(words)] = done.stdout + done.stderr
        return done.returncode

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A command that ends at SIGTERM, with exit 0."""
        errors = self.config.with_suffix(f".{arguments[0]}.stderr")
        with errors.open("w") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "streamer", *arguments, "-c", str(self.config)],
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            rest, _ = process.communicate(timeout=COMMAND_SECONDS)
            self.output[" ".join(arguments)] = rest + errors.read_text()
        assert process.returncode == 0, self.output

    async def work(self) -> None:
        """Produce, run, export, look: all with success."""
        assert self.command("produce", self.files, "-c", self.config) == 0, self.output
        store = RedisStore(self.settings.redis)
        with self.running("run", "--workers", "1"), self.running("export") as export:
            await until(lambda: has_read(store), "all records are read", lambda: str(self.output))
            assert export.stdout is not None
            url = export.stdout.readline().split()[-1].removesuffix("/metrics")
            headers = basic("me", EXPORTER_PASSWORD)
            async with aiohttp.ClientSession(headers=headers) as session:
                for page in ("/metrics", "/api/readings", "/api/readings?at=stream", "/readyz"):
                    async with session.get(url + page) as answer:
                        assert answer.status == 200, await answer.text()
                        self.output[page] = f"{answer.headers}{await answer.text()}"
                for page in ("/", "/api/readings?x=1", "/healthz", "/nothing"):
                    async with session.get(url + page) as answer:
                        self.output[page] = f"{answer.headers}{await answer.text()}"
            for line in (["check"], ["inspect"], ["inspect", "--json"], ["inspect", "0"]):
                self.command(*line, "-c", self.config)
            await self._look_into(store)
        self.command("metrics")
        self.command("replay", self.files, "-c", self.config, "--json")
        await store.close()

    async def _look_into(self, store: RedisStore) -> None:
        """Everything in Redis, and what is compressed there also in the open."""
        key = await store.hash_key()
        assert key is not None
        self.hash_key = key
        client = store.redis
        async for key in client.scan_iter("*"):
            kind = (await client.type(key)).decode()
            value = await (client.hgetall(key) if kind == "hash" else client.dump(key))
            self.output[f"redis {key.decode()}"] = f"{key!r} {value!r}"
        for number in range(2):
            manifest = decode((await store.read(number)).manifest)
            self.output[f"manifest {number}"] = repr(msgspec.to_builtins(manifest))
            names = sorted(manifest.blob_names())
            for name, data in zip(names, await store.blobs(number, names), strict=True):
                assert data is not None
                if name == manifest.texts:
                    self.output[f"blob {name}"] = repr(Texts.decode(data, name))
                    continue
                columns = codec.decode(data, name)
                self.output[f"blob {name}"] = repr({k: v.tobytes() for k, v in columns.items()})


async def has_read(store: RedisStore) -> bool:
    found = [(await store.read(number)).manifest for number in range(2)]
    topics = [t for m in found if m for t in decode(m).topics.values()]
    return sum(t.next_offset for t in topics) == len(events()) - len(BROKEN)


@pytest.fixture(scope="module")
def redis_with_password(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[EmbeddedRedis]:
    acl = f"user default on >{REDIS_PASSWORD} +@all ~* &*\n"
    with secured_redis(tmp_path_factory.mktemp("redis"), certificates, acl) as server:
        yield server


@pytest.fixture(scope="module")
def documents(
    secured: SecuredKafka,
    certificates: Certificates,
    redis_with_password: EmbeddedRedis,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "kafka").write_text(PASSWORD)
    tag = uuid.uuid4().hex[:8]
    topics = {name: f"{name}-{tag}" for name in Topics.__struct_fields__}
    asyncio.run(create_topics(secured.brokers, topics.values(), 2))
    return {
        "dimensions": [{"name": "variant"}],
        "events": {"fields": {"item_id": "sku", "user_id": "uid"}},
        "kafka": {
            "brokers": secured.sasl,
            "group": tag,
            "topics": topics,
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": USER,
            "sasl_password_file": str(folder / "kafka"),
            "ssl_cafile": str(certificates.ca),
        },
        "redis": {
            "url": redis_with_password.url.replace("://", f"://default:{REDIS_PASSWORD}@"),
            "ssl_ca_certs": str(certificates.ca),
        },
        "exporter": {"username": "me", "port": 0},
    }


@pytest.fixture(scope="module")
def system(documents: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> System:
    """It has run."""
    environment = {"STREAMER_EXPORTER__PASSWORD": EXPORTER_PASSWORD}
    made = System(tmp_path_factory.mktemp("system"), documents, environment)
    asyncio.run(made.work())
    return made


def test_no_secret_is_shown(system: System) -> None:
    assert len(system.output) > 20
    assert "streamer_impressions_total{" in system.output["/metrics"]
    found = [
        (name, secret)
        for name, text in system.output.items()
        for secret in SECRETS
        if secret in text
    ]
    assert found == []


def test_the_hash_key_is_only_in_redis(system: System) -> None:
    forms = {key_text(system.hash_key), *map(str, system.hash_key)}
    names = [name for name, text in system.output.items() if any(form in text for form in forms)]
    assert {name.split()[0] for name in names} == {"redis", "manifest"}


def test_no_id_is_shown(system: System) -> None:
    texts = {name: text for name, text in system.output.items() if not name.startswith("produce")}
    assert (
        'streamer_rejected_total{reason="item_category",topic="impressions"} 1.0'
        in texts["/metrics"]
    )
    assert [name for name, text in texts.items() if MARK in text] == []


def test_ids_are_in_no_log(system: System) -> None:
    """Nor where a producer or a replay prints what it refuses."""
    assert [name for name, text in system.output.items() if MARK in text] == []


FAILURES: dict[str, dict[str, Any]] = {
    "Kafka refuses": {"kafka": {"sasl_username": "nobody"}},
    "Kafka is away": {"kafka": {"brokers": f"{HOST}:{free_port()}"}},
    "Redis refuses": {"redis": {"username": "nobody", "password": REDIS_PASSWORD, "url": "R"}},
    "Redis is away": {"redis": {"url": f"redis://x:{REDIS_PASSWORD}@{HOST}:{free_port()}/0"}},
    "Redis needs TLS": {"redis": {"url": "P"}},
    "two passwords": {"redis": {"password": REDIS_PASSWORD}},
}


@LEAVES_OPEN
@pytest.mark.parametrize("what", FAILURES)
def test_no_failure_shows_a_secret(
    what: str,
    documents: dict[str, Any],
    redis_with_password: EmbeddedRedis,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = {**documents, "exporter": {"username": "me", "password": EXPORTER_PASSWORD}}
    for section, values in FAILURES[what].items():
        document[section] = {**document[section], **values}
    place = f"{HOST}:{redis_with_password.port}"
    urls = {"R": f"rediss://{place}/0", "P": f"redis://x:{REDIS_PASSWORD}@{place}/0"}
    document["redis"]["url"] = urls.get(document["redis"]["url"], document["redis"]["url"])
    if document["redis"]["url"].startswith("redis:"):
        del document["redis"]["ssl_ca_certs"]
    config = tmp_path / "streamer.toml"
    config.write_text(as_toml(document))
    (tmp_path / "one.ndjson").write_text(events()[0])
    for arguments in (["run"], ["check"], ["inspect"], ["produce", str(tmp_path / "one.ndjson")]):
        code = main.main([*arguments, "-c", str(config), "--debug"])
        said = "".join(capsys.readouterr())
        assert code or arguments[0] not in ("run", "check")
        assert not [secret for secret in SECRETS if secret in said], said
    gc.collect()


@pytest.mark.parametrize(
    "url",
    [
        "redis://:{}@127.0.0.1:1/0",
        "redis://me:{}/more@127.0.0.1:1/0",
        "redis://:{}#x@127.0.0.1:1/0",
        "redis://me:{}@127.0.0.1:port/0",
        "redis://127.0.0.1:1/0?password={}",
        "redis://127.0.0.1:1/0?username=me&password={}&db=x",
        "http://me:{}@127.0.0.1:1/0",
        "unix://me:{}@/no/socket?db=0",
        "redis://me:{}@[::1/0",
        "redis://{}",
    ],
)
@pytest.mark.parametrize("cluster", [False, True])
def test_no_url_is_shown(
    url: str, cluster: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "streamer.toml"
    secret = "4711secret"
    config.write_text(as_toml({"redis": {"url": url.format(secret), "cluster": cluster}}))
    assert main.main(["inspect", "-c", str(config), "--debug"]) in (1, 2)
    said = "".join(capsys.readouterr())
    if url != "redis://{}":  # there it is the name of the host
        assert secret not in said
    assert said.count("streamer: ") == 1


def test_secrets_are_not_in_the_text_of_settings() -> None:
    secret = "4711secret"
    settings = Settings(
        kafka=Kafka(sasl_password=secret),
        redis=Redis(url=f"redis://:{secret}@h", password=secret),
        exporter=ExporterSettings(password=secret),
    )
    assert secret not in f"{settings} {settings!r} {settings.redis} {settings.__rich_repr__()}"
    assert repr(Redis()) != repr(Redis(prefix="other"))


@pytest.mark.parametrize("secret", ["[4711secret", "{4711secret", "4711secret", '"4711secret"'])
def test_a_password_from_the_environment_is_taken_as_it_is(secret: str) -> None:
    environment = {
        "STREAMER_KAFKA__SASL_PASSWORD": secret,
        "STREAMER_REDIS__PASSWORD": secret,
        "STREAMER_EXPORTER__PASSWORD": secret,
        "STREAMER_EXPORTER__USERNAME": "me",
    }
    settings = load(None, environment)
    assert settings.kafka.sasl_password == settings.redis.password == secret
    assert settings.exporter.password == secret


def test_settings_errors_show_no_secret() -> None:
    for value in (["4711secret"], {"a": "4711secret"}):
        for section, key in (("kafka", "sasl_password"), ("redis", "password"), ("redis", "url")):
            with pytest.raises(SettingsError) as error:
                parse({section: {key: value}})
            assert "4711secret" not in str(error.value)
