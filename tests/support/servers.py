"""Real Kafka and Redis for tests and benchmarks: found, or started and stopped again.

``kafka_server()`` takes the first of: the address in STREAMER_TEST_KAFKA; a container, where a
Docker engine answers; Apache Kafka from Maven, where java and mvn are; the embedded broker.
``redis_server()`` likewise: STREAMER_TEST_REDIS; a container; redis-server on PATH; the embedded
Valkey.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from streamer.errors import StreamerError
from streamer.testing.embedded import (
    HOST,
    EmbeddedBroker,
    EmbeddedRedis,
    Server,
    answers,
    free_port,
)

KAFKA_VERSION = "4.1.0"
CACHE = Path(__file__).parents[2] / ".cache" / "kafka" / KAFKA_VERSION
CONTAINER_IMAGES = {"kafka": "confluentinc/cp-kafka:7.6.0", "redis": "redis:7.4-alpine"}
MIN_REDIS = 7
EMBEDDED_BROKER = "the embedded broker"
DOCKER_SECONDS = 5.0
MAVEN_SECONDS = 600.0

_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>streamer</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{KAFKA_VERSION}</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId>
      <version>2.24.3</version>
    </dependency>
  </dependencies>
</project>
"""


FRUGAL = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that lives for seconds: without the second compiler it takes half the time."""
FAST = ("-Xmx512m",)
"""Those of one whose speed matters."""


class Found(NamedTuple):
    """A server that answers: what clients connect to, and which one it is, in words."""

    address: str
    what: str


class KafkaServer(Server):
    """Apache Kafka (KRaft, one node) from Maven's jars; groups rebalance without delay.

    ``kill`` and ``start`` again keep its topics.
    """

    name = "kafka"

    advertised_port: int | None = None
    """Where clients are sent to, if not here: a proxy."""
    advertised_host: str = HOST
    """An address of this host by which others reach it: then it listens on all addresses."""

    def __init__(self, directory: Path | None = None, jvm: Sequence[str] = FRUGAL) -> None:
        self._java, self._libs, self._options = _program("java"), kafka_libs(), jvm
        super().__init__(directory)
        self._controller_port = 0

    @property
    def brokers(self) -> str:
        """``host:port`` for bootstrap_servers."""
        return f"{self.advertised_host}:{self.port}"

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self._controller_port = free_port()

    def _properties(self) -> dict[str, str]:
        host = HOST if self.advertised_host == HOST else "0.0.0.0"
        client, controller = f"{host}:{self.port}", f"{HOST}:{self._controller_port}"
        advertised = f"{self.advertised_host}:{self.advertised_port or self.port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{client},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{advertised}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "offsets.topic.num.partitions": "4",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
        }

    def _jvm(self, main: str, *arguments: str) -> list[str]:
        return [self._java, *self._options, "-cp", f"{self._libs}/*", main, *arguments]

    def _command(self) -> list[str]:
        return self._jvm("kafka.Kafka", str(self.directory / "server.properties"))

    def _launch(self) -> None:
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in self._properties().items()))
        if not (self.directory / "data" / "meta.properties").exists():
            # The first character may not be a dash: it is an argument of a command line.
            random_id = b"\0" + uuid.uuid4().bytes[1:]
            cluster = base64.urlsafe_b64encode(random_id).decode().rstrip("=")
            tool = ("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(path))
            _run(self._jvm(*tool, *self._format_options()))
        super()._launch()

    def _format_options(self) -> list[str]:
        """More arguments for the tool that formats the storage."""
        return []

    def _ready(self) -> bool:
        return answers(self.port)


def kafka_libs() -> Path:
    """The folder of Kafka's jars; downloaded by Maven the first time."""
    libs = CACHE / "libs"
    if libs.exists():
        return libs
    mvn = _program("mvn")
    build = CACHE / f"download-{os.getpid()}"
    build.mkdir(parents=True, exist_ok=True)
    (build / "pom.xml").write_text(_POM)
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={build}/libs"]
    _run([mvn, "-q", "-B", "-f", str(build / "pom.xml"), *copy])
    with contextlib.suppress(OSError):  # another process was faster: its jars are as good
        (build / "libs").rename(libs)
    shutil.rmtree(build)
    return libs


@contextlib.contextmanager
def kafka_server(jvm: Sequence[str] = FRUGAL) -> Iterator[Found]:
    """A Kafka to test against; StreamerError when there is none."""
    given = os.environ.get("STREAMER_TEST_KAFKA")
    if given:
        yield Found(given, "STREAMER_TEST_KAFKA")
        return
    with contextlib.ExitStack() as stack:
        if docker_answers():
            yield _kafka_container(stack)
        elif shutil.which("java") and (shutil.which("mvn") or (CACHE / "libs").exists()):
            server = stack.enter_context(KafkaServer(jvm=jvm))
            yield Found(server.brokers, f"Apache Kafka {KAFKA_VERSION} from Maven")
        else:
            broker = stack.enter_context(EmbeddedBroker())
            yield Found(broker.brokers, f"{EMBEDDED_BROKER} (no Docker engine, no java + mvn)")


@contextlib.contextmanager
def redis_server() -> Iterator[Found]:
    """A Redis to test against; StreamerError when there is none."""
    given = os.environ.get("STREAMER_TEST_REDIS")
    if given:
        yield Found(given, "STREAMER_TEST_REDIS")
        return
    with contextlib.ExitStack() as stack:
        if docker_answers():
            yield _redis_container(stack)
        else:
            redis = stack.enter_context(own_redis())
            yield Found(redis.url, redis_program() or "the embedded Valkey (no redis-server)")


def own_redis(
    directory: Path | None = None,
    *,
    appendonly: bool = False,
    options: Mapping[str, str] | None = None,
) -> EmbeddedRedis:
    """A Redis process of one's own, not started yet, to be configured, killed and restarted."""
    return EmbeddedRedis(directory, appendonly=appendonly, options=options, program=redis_program())


def redis_program() -> str | None:
    """redis-server on PATH, when it is new enough."""
    path = shutil.which("redis-server")
    if path is None:
        return None
    version = re.search(r"v=(\d+)", _run([path, "--version"]))
    return path if version and int(version[1]) >= MIN_REDIS else None


@functools.cache
def docker_answers() -> bool:
    """Whether there is a Docker engine, not only its command line."""
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=DOCKER_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _kafka_container(stack: contextlib.ExitStack) -> Found:
    from testcontainers.community.kafka import KafkaContainer

    image = CONTAINER_IMAGES["kafka"]
    container = stack.enter_context(KafkaContainer(image).with_kraft())
    return Found(container.get_bootstrap_server(), f"container {image}")


def _redis_container(stack: contextlib.ExitStack) -> Found:
    from testcontainers.community.redis import RedisContainer

    image = CONTAINER_IMAGES["redis"]
    container = stack.enter_context(RedisContainer(image))
    address = f"{container.get_container_host_ip()}:{container.get_exposed_port(6379)}"
    return Found(f"redis://{address}/0", f"container {image}")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise StreamerError(f"no {name} on PATH: Kafka from Maven needs java 17 and mvn")
    return path


def _run(command: list[str]) -> str:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=MAVEN_SECONDS
    )
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:] or ["it printed nothing"]
        raise StreamerError(f"{command[0]} failed with exit code {done.returncode}: {last[0]}")
    return done.stdout
