"""docker-compose.yml without an engine: what the containers would run, as processes on loopback.

The commands, environments, mounted files, health checks and the order are those of the file. Only
host names, ports and paths are others, and the images' own start scripts are in ``PROGRAMS``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from streamer.testing.embedded import HOST, Server, free_port
from tests.support.required import program
from tests.support.servers import FRUGAL, kafka_libs

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "Dockerfile"
WITHOUT_PROGRAM = frozenset({"grafana"})
"""Services whose program no package registry has: their files are checked instead."""
SCRAPE_SECONDS = 2
"""Instead of the quarter of a minute in prometheus.yml, so that a rate is there soon."""
_HEALTH_PAUSE_SECONDS = 0.3
_EXIT_SECONDS = 60.0


def load(path: Path) -> Any:
    """A YAML file."""
    return YAML(typ="safe").load(path.read_text(encoding="utf-8"))


def services() -> dict[str, dict[str, Any]]:
    """The services of docker-compose.yml."""
    found: dict[str, dict[str, Any]] = load(FILE)["services"]
    return found


def entrypoint() -> list[str]:
    """The Dockerfile's."""
    found = re.search(
        r"^ENTRYPOINT (\[.*\])$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert found, "no ENTRYPOINT in exec form"
    words: list[str] = json.loads(found[1])
    return words


def in_order(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names of services, each after those it depends on."""
    names: list[str] = []

    def add(name: str) -> None:
        for needed in found[name].get("depends_on", {}):
            add(needed)
        if name not in names:
            names.append(name)

    for name in found:
        add(name)
    return names


class Container(Server):
    """One process of a service; it is ready when the file's health check says so."""

    def __init__(self, name: str, directory: Path, command: list[str], health: list[str]) -> None:
        self.name = name
        super().__init__(directory)
        self.port = 1  # ports are in the command already: a second attempt would not differ
        self._program, self._health = command, health

    def _command(self) -> list[str]:
        return self._program

    def _ready(self) -> bool:
        if not self._health:
            return True
        time.sleep(_HEALTH_PAUSE_SECONDS)
        done = subprocess.run(self._health, check=False, capture_output=True, timeout=30)
        return done.returncode == 0

    def said(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait(self) -> int:
        """The exit status of what ends by itself, or was told to."""
        assert self._process is not None
        return self._process.wait(_EXIT_SECONDS)

    def told_to_stop(self) -> int:
        """SIGTERM, as ``docker compose stop`` sends it; the exit status."""
        assert self._process is not None
        self._process.terminate()
        return self.wait()


class Stack:
    """The services on this machine's loopback; ``start`` them in order, then ``stop``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.services = services()
        self.ports = {number: free_port() for number in _port_numbers(self.services)}
        self.running: dict[str, list[Container]] = {}
        self.exited: dict[str, int] = {}

    def start(self, after: Mapping[str, Callable[[], None]]) -> None:
        """Start what can be started, each when what it depends on is as the file says; ``after``
        a service has started something may be done."""
        for name in in_order(self.services):
            if name in WITHOUT_PROGRAM:
                continue
            for needed, condition in self.services[name].get("depends_on", {}).items():
                if condition["condition"] == "service_completed_successfully":
                    assert self.exited[needed] == 0, self.running[needed][0].said()
            count = self.services[name].get("deploy", {}).get("replicas", 1)
            self.running[name] = [self._container(name, n) for n in range(count)]
            for container in self.running[name]:
                container.start()
            if self._is_one_shot(name):
                self.exited[name] = self.running[name][0].wait()
            after.get(name, lambda: None)()

    def stop(self) -> None:
        for name in reversed(list(self.running)):
            for container in self.running[name]:
                container.stop()

    def url(self, number: int) -> str:
        return f"http://{HOST}:{self.ports[number]}"

    def environment(self, name: str) -> list[str]:
        """``env`` and its arguments: nothing of ours but the PATH, and what the file sets."""
        place = self.directory / name
        place.mkdir(parents=True, exist_ok=True)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        own = [f"PATH={path}", f"HOME={place}", f"TMPDIR={place}", "LANG=C.UTF-8"]
        given = self.services[name].get("environment", {})
        env = shutil.which("env")
        assert env
        return [env, "-i", *own, *(f"{k}={self.local(str(v), name)}" for k, v in given.items())]

    def local(self, text: str, name: str) -> str:
        """The text with loopback, our ports, and our folders for those that are mounted."""
        for volume in self.services[name].get("volumes", []):
            source, inside = volume.split(":")[:2]
            path = rf"(?<![\w./-]){re.escape(inside)}(?![\w.-])"
            text = re.sub(path, str(self._mounted(source)), text)
        hosts = "|".join(self.services)
        text = re.sub(rf"\b(?:{hosts}|0\.0\.0\.0)(?=:\d)", HOST, text)
        text = re.sub(r"\b0\.0\.0\.0\b", HOST, text)
        numbers = "|".join(map(str, self.ports))
        return re.sub(rf"\b(?:{numbers})\b", lambda found: str(self.ports[int(found[0])]), text)

    def _mounted(self, source: str) -> Path:
        """A named volume is an empty folder; of the repository's files we take copies."""
        place = self.directory / "volumes" / source.strip("./").replace("/", "-")
        if place.exists():
            return place
        if not source.startswith("."):
            place.mkdir(parents=True)
            return place
        shutil.copytree(ROOT / source, place)
        config = place / "prometheus.yml"
        if config.exists():
            text = self.local(config.read_text(encoding="utf-8"), "kafka")
            often = re.sub(r"(interval|timeout): \d+s", rf"\1: {SCRAPE_SECONDS}s", text)
            config.write_text(often, encoding="utf-8")
        return place

    def _container(self, name: str, number: int) -> Container:
        service = self.services[name]
        words = _words(service.get("command", []))
        program = PROGRAMS[service["image"].split(":")[0]](self, name)
        command = [*program, *(self.local(word, name) for word in words)]
        health = [self.local(w, name) for w in _health(service.get("healthcheck", {}))]
        directory = self.directory / f"{name}-{number}"
        env = self.environment(name)
        return Container(name, directory, [*env, *command], [*env, *health] if health else [])

    def _is_one_shot(self, name: str) -> bool:
        return any(
            condition.get("condition") == "service_completed_successfully"
            for service in self.services.values()
            for needed, condition in service.get("depends_on", {}).items()
            if needed == name
        )


def _port_numbers(found: Mapping[str, Mapping[str, Any]]) -> Iterator[int]:
    """Every number that stands after a colon, or ``port``, in what services are told."""
    passed = [
        (s.get("command", ""), s.get("environment", ""), s.get("ports", "")) for s in found.values()
    ]
    return iter(sorted({int(n) for n in re.findall(r"(?::|port[ ',]+)(\d{4})\b", str(passed))}))


def _words(command: str | list[str]) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else [str(word) for word in command]


def _health(check: Mapping[str, Any]) -> list[str]:
    kind, *words = check.get("test", ["NONE"])
    if kind == "NONE":
        return []
    return ["sh", "-c", *words] if kind == "CMD-SHELL" else words


# What the images start with -----------------------------------------------------------------------


def _kafka(stack: Stack, name: str) -> list[str]:
    """apache/kafka: its launch script lets KafkaDockerWrapper make the properties of the KAFKA_…
    variables and format the storage, then starts the broker with them."""
    java = program("Apache Kafka", "java")
    run = [java, *FRUGAL, "-cp", f"{kafka_libs()}/*"]
    final, defaults = stack.directory / "kafka-final", stack.directory / "kafka-defaults"
    for folder in (final, defaults):
        folder.mkdir()
    (defaults / "server.properties").touch()
    for log in ("log4j2.yaml", "tools-log4j2.yaml"):
        (defaults / log).write_text("Configuration:\n  Loggers:\n    Root:\n      level: WARN\n")
    folders = ["-D", str(defaults), "-M", str(defaults / "none"), "-F", str(final)]
    setup = [*stack.environment(name), *run, "kafka.docker.KafkaDockerWrapper", "setup", *folders]
    done = subprocess.run(setup, check=False, capture_output=True, text=True, timeout=_EXIT_SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr
    return [*run, "kafka.Kafka", str(final / "server.properties")]


def _found(component: str, *names: str) -> Callable[[Stack, str], list[str]]:
    return lambda stack, name: [program(component, *names)]


PROGRAMS: dict[str, Callable[[Stack, str], list[str]]] = {
    "apache/kafka": _kafka,
    "redis": lambda stack, name: [],
    "prom/prometheus": _found("Prometheus", "prometheus"),
    "prom/alertmanager": _found("Alertmanager", "prometheus-alertmanager", "alertmanager"),
    "streamer": lambda stack, name: entrypoint(),
}
"""What each image puts before the command."""
