"""Servers that ask who you are: certificates, a Kafka with SASL and TLS, a Redis with TLS and ACLs.

Certificates are created for each session; nothing here is a secret of anybody.
"""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from streamer.testing.embedded import HOST, EmbeddedRedis, answers, free_port
from tests.support.required import require
from tests.support.servers import KafkaServer, redis_program

# Kafka's numbers for what an ACL is about.
_RESOURCES = {"topic": 2, "group": 3}
_OPERATIONS = {"read": 3, "write": 4, "describe": 8, "describe configs": 10}
_LITERAL, _ALLOW = 3, 3


@dataclass(frozen=True)
class Pair:
    """PEM files of a certificate and its key, and of both together."""

    cert: Path
    key: Path
    both: Path


class Certificates:
    """An authority, and what it signs, as files in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._authority = trustme.CA()
        self.ca = directory / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.ca))
        self.other_ca = directory / "other-ca.pem"
        trustme.CA().cert_pem.write_to_path(str(self.other_ca))
        self.server = self.pair("server", HOST)
        self.elsewhere = self.pair("elsewhere", "elsewhere.example")
        self.client = self.pair("client", "client.example")

    def pair(self, name: str, host: str) -> Pair:
        """A certificate for one host; its key in PKCS 8, the one form that Java reads."""
        made = self._authority.issue_cert(host, common_name=host)
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        key_pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        chain = b"".join(part.bytes() for part in made.cert_chain_pems)
        found = Pair(*(self.directory / f"{name}{end}" for end in (".pem", "-key.pem", "-all.pem")))
        found.cert.write_bytes(chain)
        found.key.write_bytes(key_pem)
        found.both.write_bytes(key_pem + chain)
        return found

    def context(self) -> ssl.SSLContext:
        """For a client that trusts this authority alone."""
        return ssl.create_default_context(cafile=str(self.ca))


class SecuredKafka(KafkaServer):
    """Apache Kafka with four listeners: plain (for the test itself), SASL over TLS, TLS with client
    certificates, and SASL over TLS with a certificate that names another host.

    ``users``: name → password, for SCRAM-SHA-256 and SCRAM-SHA-512 alike.
    """

    name = "secured-kafka"

    def __init__(self, directory: Path, made: Certificates, users: dict[str, str]) -> None:
        super().__init__(directory)
        self._made, self._users = made, users
        names = ("SASL_LISTENER", "TLS_LISTENER", "MISNAMED_LISTENER")
        self._listeners = dict.fromkeys(names, 0)

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self._listeners = {name: free_port() for name in self._listeners}

    @property
    def sasl(self) -> str:
        """``host:port`` for SASL_SSL."""
        return f"{HOST}:{self._listeners['SASL_LISTENER']}"

    @property
    def tls(self) -> str:
        """``host:port`` for SSL; a client certificate is required."""
        return f"{HOST}:{self._listeners['TLS_LISTENER']}"

    @property
    def misnamed(self) -> str:
        """``host:port`` for SASL_SSL; the certificate is another host's."""
        return f"{HOST}:{self._listeners['MISNAMED_LISTENER']}"

    def _properties(self) -> dict[str, str]:
        plain = super()._properties()
        listeners = ",".join(f"{name}://{HOST}:{port}" for name, port in self._listeners.items())
        login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        misnamed = "listener.name.misnamed_listener.ssl.keystore.location"
        return {
            **plain,
            "listeners": f"{plain['listeners']},{listeners}",
            "advertised.listeners": f"{plain['advertised.listeners']},{listeners}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL_LISTENER:SASL_SSL,TLS_LISTENER:SSL,MISNAMED_LISTENER:SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._made.server.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._made.ca),
            "listener.name.tls_listener.ssl.client.auth": "required",
            misnamed: str(self._made.elsewhere.both),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=client.example,O=trustme v1.2.1",
            "allow.everyone.if.no.acl.found": "true",
            **{
                f"listener.name.{name}.scram-sha-{bits}.sasl.jaas.config": login
                for name in ("sasl_listener", "misnamed_listener")
                for bits in (256, 512)
            },
        }

    def _format_options(self) -> list[str]:
        return [
            argument
            for name, password in self._users.items()
            for bits in (256, 512)
            for argument in ("--add-scram", f"SCRAM-SHA-{bits}=[name={name},password={password}]")
        ]

    async def grant(self, user: str, kind: str, names: Iterable[str], *operations: str) -> None:
        """ACLs of Kafka: ``await grant("worker", "topic", ["clicks"], "read", "describe")``."""
        admin = AIOKafkaAdminClient(bootstrap_servers=self.brokers)
        await admin.start()
        try:
            for name, operation in itertools.product(names, operations):
                request = CreateAclsRequest(
                    _RESOURCES[kind],
                    name,
                    _LITERAL,
                    f"User:{user}",
                    "*",
                    _OPERATIONS[operation],
                    _ALLOW,
                )
                answer = await admin._send_to_controller(request)
                assert [code for code, _ in answer.creation_responses] == [0], answer
        finally:
            await admin.close()


def secured_redis(
    directory: Path, made: Certificates, acl: str = "", **options: Any
) -> EmbeddedRedis:
    """A Redis with TLS only; ``acl`` holds lines of an ACL file. The embedded one cannot."""
    require("Redis")
    return _TlsRedis(directory, made, acl, **options)


class _TlsRedis(EmbeddedRedis):
    def __init__(self, directory: Path, made: Certificates, acl: str, **options: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        users = directory / "users.acl"
        users.write_text(acl)
        super().__init__(
            directory,
            appendonly=True,
            program=redis_program(),
            options={
                "tls-cert-file": str(made.server.cert),
                "tls-key-file": str(made.server.key),
                "tls-ca-cert-file": str(made.ca),
                "tls-auth-clients": "optional",
                "aclfile": str(users),
                **options,
            },
        )
        self._context = made.context()

    @property
    def url(self) -> str:
        return f"rediss://{HOST}:{self.port}/0"

    def _command(self) -> list[str]:
        program, _, _, *options = super()._command()
        return [program, "--port", "0", "--tls-port", str(self.port), *options]

    def _ready(self) -> bool:
        return answers(self.port)
