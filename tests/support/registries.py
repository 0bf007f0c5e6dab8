"""Schema registries for tests: a small one of our own that answers as the API of Confluent's is
documented, and Apicurio Registry, which offers the same API."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import ssl
import tarfile
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from streamer.testing.embedded import HOST, Server, answers
from tests.support.required import require
from tests.support.servers import FRUGAL, _program, _run

APICURIO_VERSION = "2.6.13.Final"
"""The last that runs on Java 17."""
CACHE = Path(__file__).parents[2] / ".cache" / "apicurio" / APICURIO_VERSION
_JAR = f"apicurio-registry-app-{APICURIO_VERSION}-runner.jar"
_JSON = "application/vnd.schemaregistry.v1+json"
Reference = dict[str, Any]


def register(
    url: str, subject: str, text: str, kind: str, references: list[Reference] | None = None
) -> int:
    """The id of a schema that a registry is given."""
    body = {"schema": text, "schemaType": kind, "references": references or []}
    request = urllib.request.Request(
        f"{url}/subjects/{subject}/versions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": _JSON},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return int(json.loads(answer.read())["id"])


class Threaded:
    """Serves in a thread of its own while it is entered."""

    server: ThreadingHTTPServer

    def __enter__(self) -> Self:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


class PlainRegistry(Threaded):
    """Keeps schemas in memory. ``authorization``: the header that is asked for; ``status``: what
    every request is answered with, if anything."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.schemas: dict[int, dict[str, Any]] = {}
        self.versions: dict[str, list[int]] = {}
        self.asked: list[str] = []
        self.authorization: str | None = None
        self.status: int | None = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.asked.append(self.path)
                self.answer(*registry.get(self.path, self.headers.get("Authorization")))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.answer(200, {"id": registry.add(self.path.split("/")[2], body)})

            def answer(self, status: int, document: dict[str, Any]) -> None:
                text = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", _JSON)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://{HOST}:{self.server.server_port}"

    def add(self, subject: str, body: dict[str, Any]) -> int:
        number = len(self.schemas) + 1
        kept = {key: body[key] for key in ("schema", "references") if body.get(key)}
        if body["schemaType"] != "AVRO":  # which is the default, and is left out
            kept["schemaType"] = body["schemaType"]
        self.schemas[number] = kept
        self.versions.setdefault(subject, []).append(number)
        return number

    def get(self, path: str, authorization: str | None) -> tuple[int, dict[str, Any]]:
        if self.status is not None:
            return self.status, {"error_code": 50001, "message": "Error in the backend store"}
        if authorization != self.authorization:
            return 401, {"error_code": 401, "message": "Unauthorized"}
        match path.strip("/").split("/"):
            case ["schemas", "ids", number]:
                if found := self.schemas.get(int(number)):
                    return 200, found
                return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
            case ["subjects", subject, "versions", version]:
                numbers = self.versions.get(subject, [])
                if int(version) <= len(numbers):
                    found_id = numbers[int(version) - 1]
                    head = {"subject": subject, "version": int(version), "id": found_id}
                    return 200, {**head, **self.schemas[found_id]}
                return 404, {"error_code": 40402, "message": "Version not found"}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


class ApicurioRegistry(Server):
    """Apicurio Registry from Maven, which keeps schemas in memory."""

    name = "apicurio"

    def __init__(self) -> None:
        require("Apache Kafka")  # the same Java and Maven
        self._java, self._home = _program("java"), _home()
        super().__init__()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    def _command(self) -> list[str]:
        at = [f"-Dquarkus.http.host={HOST}", f"-Dquarkus.http.port={self.port}"]
        return [self._java, *FRUGAL, *at, "-jar", f"{self._home / _JAR}"]

    def _ready(self) -> bool:
        return answers(self.port)


def _home() -> Path:
    """Its folder; downloaded by Maven the first time (142 MB)."""
    if (CACHE / _JAR).exists():
        return CACHE
    build = CACHE.with_name(f"download-{os.getpid()}")
    build.mkdir(parents=True, exist_ok=True)
    artifact = f"io.apicurio:apicurio-registry-app:{APICURIO_VERSION}:tar.gz:all"
    goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    to = [f"-Dartifact={artifact}", f"-DoutputDirectory={build}", "-Dproject.basedir=."]
    _run([_program("mvn"), "-q", "-B", goal, *to])
    (archive,) = build.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(build, filter="data")
    archive.unlink()
    shutil.rmtree(CACHE, ignore_errors=True)  # what an interrupted download left
    with contextlib.suppress(OSError):  # another process was faster
        build.rename(CACHE)
    shutil.rmtree(build, ignore_errors=True)
    return CACHE


@contextlib.contextmanager
def registry(kind: str) -> Iterator[str]:
    """The address of a registry: ``plain`` or ``apicurio``."""
    if kind == "plain":
        with PlainRegistry() as plain:
            yield plain.url
    else:
        with ApicurioRegistry() as apicurio:
            yield apicurio.url
