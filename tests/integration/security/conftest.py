"""A Kafka and certificates for the tests of this folder, and commands run as a person would."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from streamer.settings.model import Topics
from streamer.testing.embedded import create_topics
from tests.integration.workers import delete_topics
from tests.required import require
from tests.secured import Certificates, SecuredKafka

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
    names = [getattr(topics, name) for name in Topics.__struct_fields__]

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
