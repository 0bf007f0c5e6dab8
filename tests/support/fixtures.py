"""Fixtures of all rooms: Kafka and Redis, which start when the first test asks for them.

Tests of all processes of a run share them, so each takes topics and a key prefix of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import redis

from streamer.errors import StreamerError
from streamer.settings.model import Topics
from streamer.testing.embedded import EmbeddedRedis, create_topics, delete_topics
from tests.conftest import FOUND, LENDERS
from tests.support.exporters import Site, serving
from tests.support.lending import shared
from tests.support.required import require
from tests.support.secured import Certificates, SecuredKafka
from tests.support.servers import EMBEDDED_BROKER, own_redis

MakeTopics = Callable[..., Topics]
MakeRedis = Callable[..., EmbeddedRedis]


@contextlib.contextmanager
def _or_fail(config: pytest.Config, name: str) -> Iterator[str]:
    lenders = getattr(config, "workerinput", {}).get(LENDERS, {})
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(shared(name, lenders))
        except StreamerError as error:
            pytest.fail(f"these tests need {name}: {error}", pytrace=False)
        config.stash[FOUND][name] = f"{server.what}, {server.address}"
        yield server.address


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> Iterator[str]:
    """``host:port`` of the run's Kafka."""
    with _or_fail(pytestconfig, "kafka") as brokers:
        yield brokers


@pytest.fixture
def apache_kafka(kafka: str, pytestconfig: pytest.Config) -> str:
    """The same, for a test that needs what the embedded broker does not do as Kafka does."""
    if EMBEDDED_BROKER in pytestconfig.stash[FOUND]["kafka"]:
        require("Apache Kafka")
    return kafka


@pytest.fixture(scope="session")
def redis_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of the run's Redis."""
    with _or_fail(pytestconfig, "redis") as url:
        yield url


@pytest.fixture
def topics(kafka: str) -> Iterator[MakeTopics]:
    """``topics(partitions=4)`` creates the five topics under names of this test alone.

    Also from a test that is a coroutine: the work is done in a thread with a loop of its own.
    """
    made: list[str] = []

    with ThreadPoolExecutor(1) as thread:

        def make(partitions: int = 4) -> Topics:
            tag = uuid.uuid4().hex[:8]
            names = {name: f"{name}-{tag}" for name in Topics.__struct_fields__}
            made.extend(names.values())
            thread.submit(asyncio.run, create_topics(kafka, names.values(), partitions)).result()
            return Topics(**names)

        yield make
        thread.submit(asyncio.run, delete_topics(kafka, made)).result()


@contextlib.contextmanager
def own_prefix(redis_url: str) -> Iterator[str]:
    """A key prefix that nobody else has; every key that contains it goes afterwards."""
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    yield prefix
    with contextlib.closing(redis.from_url(redis_url)) as client:
        for key in client.scan_iter(f"*{prefix}*", count=1000):
            client.unlink(key)


@pytest.fixture
def redis_prefix(redis_url: str) -> Iterator[str]:
    """A key prefix of this test alone."""
    with own_prefix(redis_url) as prefix:
        yield prefix


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(redis_url: str) -> AsyncIterator[Site]:
    """An exporter over a filled Redis, for all tests of a module that only read, in its loop."""
    with own_prefix(redis_url) as prefix:
        async with serving(redis_url, prefix) as found:
            yield found


@pytest.fixture
def make_redis(tmp_path: Path) -> Iterator[MakeRedis]:
    """``make_redis(appendonly=True, options={...})`` starts a Redis of this test alone.

    It has ``url``, ``kill()`` (a crash), ``start()`` (same port, same files) and ``directory``.
    """
    with contextlib.ExitStack() as stack:

        def make(
            *, appendonly: bool = False, options: Mapping[str, str] | None = None
        ) -> EmbeddedRedis:
            directory = tmp_path / f"redis-{uuid.uuid4().hex[:8]}"
            server = own_redis(directory, appendonly=appendonly, options=options)
            return stack.enter_context(server)

        yield make


# Servers that ask who you are, and commands as a person runs them ------------------------------

USER, PASSWORD = "worker", "kafka-right-password"
LIMITED, LIMITED_PASSWORD = "limited", "kafka-other-password"
COMMAND_SECONDS = 40.0
"""Within it a command that is refused has to end."""

LEAVES_OPEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Clients do not wait for a TLS connection to close that a server refused, and the event loop of a
command run in this process ends before; such a test ends with ``gc.collect()``, so that the warning
falls into no other test."""


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The one line of an error; anything else is a failure."""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("streamer: "), self.err
        return self.err.strip()


Command = Callable[..., Ended]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def secured(
    tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[SecuredKafka]:
    require("Apache Kafka")
    users = {USER: PASSWORD, LIMITED: LIMITED_PASSWORD}
    with SecuredKafka(tmp_path_factory.mktemp("kafka"), certificates, users) as server:
        yield server


@pytest.fixture
def secured_topics(secured: SecuredKafka) -> Iterator[Topics]:
    """Topics of this test alone, with two partitions."""
    tag = uuid.uuid4().hex[:8]
    topics = Topics(**{name: f"{name}-{tag}" for name in Topics.__struct_fields__})
    names = list(topics.named.values())

    async def make() -> None:
        await create_topics(secured.brokers, names, 2)

    asyncio.run(make())
    yield topics
    asyncio.run(delete_topics(secured.brokers, names))


@pytest.fixture
def command() -> Command:
    """``command("check", "-c", path, environment={...})`` in a process of its own."""

    def run(*arguments: object, environment: Mapping[str, str] | None = None) -> Ended:
        done = subprocess.run(
            [sys.executable, "-m", "streamer", *map(str, arguments)],
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
