"""Kafka and Redis for the integration tests, one of each for the whole session.

Tests share them, so each takes topics and a key prefix of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis
from aiokafka.admin import AIOKafkaAdminClient

from streamer.errors import StreamerError
from streamer.settings.model import Topics
from streamer.testing.embedded import EmbeddedRedis, create_topics
from tests.conftest import FOUND
from tests.required import require
from tests.servers import EMBEDDED_BROKER, Found, kafka_server, own_redis, redis_server

MakeTopics = Callable[..., Topics]
MakeRedis = Callable[..., EmbeddedRedis]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.integration)


@contextlib.contextmanager
def _or_fail(
    config: pytest.Config,
    name: str,
    server: Callable[[], contextlib.AbstractContextManager[Found]],
) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(server())
        except StreamerError as error:
            pytest.fail(f"these tests need {name}: {error}", pytrace=False)
        config.stash[FOUND][name] = f"{found.what}, {found.address}"
        yield found.address


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config) -> Iterator[str]:
    """``host:port`` of the session's Kafka."""
    with _or_fail(pytestconfig, "kafka", kafka_server) as brokers:
        yield brokers


@pytest.fixture
def apache_kafka(kafka: str, pytestconfig: pytest.Config) -> str:
    """The same, for a test that needs what the embedded broker does not do as Kafka does."""
    if EMBEDDED_BROKER in pytestconfig.stash[FOUND]["kafka"]:
        require("Apache Kafka")
    return kafka


@pytest.fixture(scope="session")
def redis_url(pytestconfig: pytest.Config) -> Iterator[str]:
    """URL of the session's Redis."""
    with _or_fail(pytestconfig, "redis", redis_server) as url:
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
        thread.submit(asyncio.run, _delete_topics(kafka, made)).result()


async def _delete_topics(brokers: str, names: list[str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    try:
        await admin.start()
        await admin.delete_topics(names)
    finally:
        await admin.close()


@pytest.fixture
def redis_prefix(redis_url: str) -> Iterator[str]:
    """A key prefix of this test alone; every key that contains it goes afterwards."""
    prefix = f"test-{uuid.uuid4().hex[:12]}"
    yield prefix
    with contextlib.closing(redis.from_url(redis_url)) as client:
        for key in client.scan_iter(f"*{prefix}*", count=1000):
            client.unlink(key)


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
