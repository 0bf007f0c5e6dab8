"""Settings of a schema registry, and their rules."""

from __future__ import annotations

import re

from streamer.errors import SettingsError
from streamer.settings.durations import duration_ms
from streamer.settings.section import Section
from streamer.settings.urls import http_parts

FORMATS = ("json", "json-schema", "avro", "protobuf")
WITH_SCHEMAS = ("avro", "protobuf")
"""Formats that cannot be read without a schema."""
GLUE = "glue://"
"""What an address of AWS Glue's registry begins with; its region follows."""


class Registry(Section, frozen=True):
    """[sources.registry]: the schema registry of a source, Confluent's or AWS Glue's; or only its
    address: `registry = "http://registry:8081"`."""

    url: str
    """Address, `http://` or `https://`; a path before `/schemas` belongs to it. `https_proxy` of
    the environment is used, `http_proxy` never: it would read the credentials. `glue://REGION` is
    AWS Glue's, with the role of this machine or pod (needs `streamer-metrics[aws]`)."""
    unknown_after: str = "5m"
    """How long a partition waits for a schema that the registry lacks. Then the schema's records
    are rejected as `schema` until the registry has it. For an hour, records of other missing
    schemas are rejected at once. `0s`: nothing waits. If the registry does not answer, partitions
    wait without limit."""
    username: str | None = None
    """User name for basic authentication."""
    password: str | None = None
    """The user's password; prefer a file."""
    password_file: str | None = None
    """File with the password."""
    token_file: str | None = None
    """File with a bearer token, read for each request."""
    ssl_cafile: str | None = None
    """CA certificates in PEM, instead of the system's."""
    ssl_certfile: str | None = None
    """Client certificate in PEM."""
    ssl_keyfile: str | None = None
    """Private key of the certificate."""

    def unknown_after_seconds(self, at: str = "in [[sources]]") -> float:
        """``unknown_after`` in seconds; SettingsError where it is no duration."""
        if self.unknown_after in ("0", "0s"):
            return 0.0
        return duration_ms(self.unknown_after, f"unknown_after; {at}") / 1000


def validate_registry(data_format: str, registry: Registry | None, at: str) -> None:
    """Raise SettingsError where the format of a source and its registry do not fit."""
    if data_format not in FORMATS:
        raise SettingsError(f"format = {data_format!r}: one of {', '.join(FORMATS)}; {at}")
    if registry is None:
        if data_format in WITH_SCHEMAS:
            raise SettingsError(
                f"format = {data_format!r} needs its schemas: add registry = "
                f"'http://registry:8081'; {at}"
            )
        return
    if data_format not in WITH_SCHEMAS:
        raise SettingsError(
            f"format = {data_format!r} needs no registry: remove it, or set format to one of "
            f"{', '.join(WITH_SCHEMAS)}; {at}"
        )
    at = f"{at}.registry"
    if registry.url.startswith(GLUE):
        _validate_glue(registry, at)
        return
    parts = http_parts(registry.url)
    has_more = parts and (parts.username or parts.password or parts.query or parts.fragment)
    if parts is None or has_more or parts.port == 0:
        raise SettingsError(
            f"url is none like 'https://registry:8081'; credentials are keys of their own; {at}"
        )
    registry.unknown_after_seconds(at)
    passwords = [x for x in (registry.password, registry.password_file) if x is not None]
    if len(passwords) != (registry.username is not None):
        raise SettingsError(f"username needs one of password_file and password; {at}")
    if registry.username is not None and registry.token_file is not None:
        raise SettingsError(f"username and token_file: one of them; {at}")
    if registry.ssl_keyfile is not None and registry.ssl_certfile is None:
        raise SettingsError(f"ssl_keyfile is set without ssl_certfile; {at}")


def _validate_glue(registry: Registry, at: str) -> None:
    if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", registry.url.removeprefix(GLUE)):
        raise SettingsError(f"url is none like 'glue://eu-west-1'; {at}")
    registry.unknown_after_seconds(at)
    for key in registry.__struct_fields__:
        if key not in ("url", "unknown_after") and getattr(registry, key) is not None:
            raise SettingsError(
                f"{key} is none of AWS Glue's registry, which the role of this process may read: "
                f"remove it; {at}"
            )
