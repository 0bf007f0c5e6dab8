"""Kafka clusters: how each is connected to."""

from __future__ import annotations

from dataclasses import dataclass

from streamer.settings.section import Section

MAIN = "kafka"
"""The section of the cluster that the workers' group and the dead letters are in."""


class Connection(Section, frozen=True):
    """[clusters.NAME]: another Kafka cluster, which `cluster` of `[[sources]]` names."""

    brokers: str
    """`host:port`, several separated by commas."""
    security_protocol: str = "PLAINTEXT"
    """`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT` or `SASL_SSL`."""
    sasl_mechanism: str = "PLAIN"
    """`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `GSSAPI`, `OAUTHBEARER`, or `AWS_MSK_IAM` with the
    role of this machine or pod (needs `streamer-metrics[aws]`)."""
    sasl_username: str | None = None
    """For `PLAIN` and `SCRAM`."""
    sasl_password: str | None = None
    """For `PLAIN` and `SCRAM`; prefer the environment or the file."""
    sasl_password_file: str | None = None
    """File with the password."""
    sasl_kerberos_service_name: str = "kafka"
    """For `GSSAPI` (needs the package `gssapi`)."""
    sasl_kerberos_domain_name: str | None = None
    """For `GSSAPI`."""
    sasl_oauth_token_file: str | None = None
    """For `OAUTHBEARER`: file with the token, which is read again for each login."""
    ssl_cafile: str | None = None
    """PEM file of the authorities to trust; by default the system's authorities."""
    ssl_certfile: str | None = None
    """PEM file of the client certificate."""
    ssl_keyfile: str | None = None
    """PEM file of the certificate's key, if the certificate file has none."""
    ssl_keyfile_password_file: str | None = None
    """File with the password of the key."""
    ssl_check_hostname: bool = True
    """Whether the certificate must name the broker."""


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster that is read. ``name``: None for that of ``[kafka]``."""

    name: str | None
    connection: Connection

    @property
    def section(self) -> str:
        """Where its keys stand in the settings."""
        return MAIN if self.name is None else f"clusters.{self.name}"

    @property
    def called(self) -> str:
        """Its name in messages."""
        return "Kafka" if self.name is None else f"Kafka cluster {self.name!r}"

    @property
    def place(self) -> str:
        """Which setting says where it is, and what it says."""
        return f"{self.section}.brokers {self.connection.brokers}"
