"""Schemas from a registry with the API of Confluent's, or from AWS Glue's; what was fetched is
kept, as it never changes.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html
https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html
"""

from __future__ import annotations

import asyncio
import base64
import functools
import http
import importlib.util
import os
import ssl
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from streamer.encoding.schema_ids import CONFLUENT_BITS, id_text
from streamer.errors import RegistryError, SchemaMissingError, SettingsError
from streamer.settings import limits
from streamer.settings.load import secret_of, unusable
from streamer.settings.model import Settings
from streamer.settings.registry import GLUE, Registry

SchemaText = tuple[str, list[tuple[str, str]]]
"""The text of a schema; names and texts of those that it refers to, itself or through others."""
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"


class _Reference(msgspec.Struct):
    name: str
    subject: str
    version: int


class _Schema(msgspec.Struct):
    """An answer; further keys are not looked at."""

    schema: str
    references: list[_Reference] | None = None
    schemaType: str = "AVRO"  # noqa: N815 — its name in the API


class SchemaRegistry:
    """Asks a registry. Several threads may: those that want other schemas do not wait."""

    def __init__(self, settings: Registry, expected: str) -> None:
        self._settings, self._expected = settings, expected
        self._known: dict[int, SchemaText] = {}
        self._asking: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)

    @property
    def place(self) -> str:
        """Its address, for messages."""
        return urlsplit(self._settings.url).netloc

    def schema(self, number: int) -> SchemaText:
        """The schema with an id; SchemaMissingError where the registry has none of the format,
        RegistryError where it cannot be asked."""
        with self._asking[number]:
            try:
                if number not in self._known:
                    self._known[number] = self._get_schema(number)
            finally:
                self._asking.pop(number, None)  # whoever waits has it
            return self._known[number]

    def _get_schema(self, number: int) -> SchemaText:
        found = self._find(number)
        if found is None or found.schemaType.lower() != self._expected:
            raise SchemaMissingError(self._lack(number, found))
        others: dict[str, str] = {}
        self._follow(found, others)
        self._require_small(found, others)
        return found.schema, list(others.items())

    def format_of(self, number: int) -> str:
        """The format that a schema is of, as settings call it; RegistryError where it cannot be
        got."""
        found = self._find(number)
        if found is None:
            raise SchemaMissingError(self._lack(number, None))
        kind = found.schemaType.lower()
        return "json-schema" if kind == "json" else kind

    def _find(self, number: int) -> _Schema | None:
        if number >> CONFLUENT_BITS:
            raise SchemaMissingError(
                f"schema {id_text(number)} is one of AWS Glue: write registry = '{GLUE}REGION'; "
                f"at {self.place}"
            )
        return self._ask(f"/schemas/ids/{number}")

    def _lack(self, number: int, found: _Schema | None) -> str:
        name = id_text(number)
        if found is None:
            return f"the schema registry has no schema {name}: register it; at {self.place}"
        its = f"schema {name} is {found.schemaType}, not {self._expected.upper()}"
        return f"{its}: correct format of the source; at {self.place}"

    def _follow(self, schema: _Schema, references: dict[str, str]) -> None:
        """Collect what a schema refers to, by name."""
        for each in schema.references or ():
            if each.name in references:
                continue
            if len(references) >= limits.MAX_SCHEMA_REFERENCES:
                raise RegistryError(
                    f"a schema refers to more than {limits.MAX_SCHEMA_REFERENCES} others; "
                    f"at {self.place}"
                )
            path = f"/subjects/{quote(each.subject, safe='')}/versions/{each.version}"
            other = self._ask(path)
            if other is None:
                raise RegistryError(
                    f"the schema registry has no version {each.version} of {each.subject!r}, which "
                    f"a schema refers to; at {self.place}"
                )
            references[each.name] = other.schema
            self._follow(other, references)

    def _require_small(self, schema: _Schema, others: dict[str, str]) -> None:
        if len(schema.schema) + sum(map(len, others.values())) > limits.MAX_SCHEMA_BYTES:
            raise RegistryError(
                f"a schema has more than {limits.MAX_SCHEMA_BYTES:,} bytes with those that it "
                f"refers to; at {self.place}"
            )

    def _ask(self, path: str) -> _Schema | None:
        """What the registry has at a path; None where that is nothing."""
        url = self._settings.url.rstrip("/") + path
        try:
            with ThreadPoolExecutor(1) as thread:  # where no event loop runs already
                status, phrase, body = thread.submit(lambda: asyncio.run(self._get(url))).result()
        except (OSError, aiohttp.ClientError) as error:
            raise RegistryError(
                f"cannot reach the schema registry: {_reason(error)}; at {self.place}"
            ) from error
        if status == http.HTTPStatus.NOT_FOUND and _is_of_registry(body):
            return None
        if status != http.HTTPStatus.OK:
            answer = f"{status} {phrase}{_hint(status)}"
            raise RegistryError(f"the schema registry answers {answer}; at {self.place}")
        if len(body) > limits.MAX_SCHEMA_BYTES:
            raise RegistryError(
                f"a schema has more than {limits.MAX_SCHEMA_BYTES:,} bytes; at {self.place}"
            )
        try:
            return msgspec.json.decode(body, type=_Schema)
        except msgspec.DecodeError as error:
            raise RegistryError(
                f"what answers is no schema registry: {error}; at {self.place}"
            ) from None

    async def _get(self, url: str) -> tuple[int, str, bytes]:
        """Status, its phrase, and the body, of which no more is read than there may be. No redirect
        is followed: it would take the credentials elsewhere."""
        timeout = aiohttp.ClientTimeout(total=limits.REGISTRY_SECONDS)
        context = True if self._context is None else self._context
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(
                url,
                headers=self._headers(),
                ssl=context,
                proxy=proxy_of(url),
                allow_redirects=False,
            ) as answer,
        ):
            body = b""
            while len(body) <= limits.MAX_SCHEMA_BYTES and (more := await answer.content.readany()):
                body += more
            return answer.status, answer.reason or "", body

    def _headers(self) -> dict[str, str]:
        settings, headers = self._settings, {"Accept": _ACCEPT}
        if settings.username is not None:
            password = settings.password or ""
            if settings.password_file is not None:
                password = secret_of("registry.password_file", settings.password_file)
            pair = f"{settings.username}:{password}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        elif settings.token_file is not None:
            token = secret_of("registry.token_file", settings.token_file)
            headers["Authorization"] = f"Bearer {token}"
        return headers

    @functools.cached_property
    def _context(self) -> ssl.SSLContext | None:
        settings = self._settings
        if not settings.url.startswith("https"):
            return None
        try:
            context = ssl.create_default_context(cafile=settings.ssl_cafile)
        except (OSError, ValueError) as error:
            raise unusable("registry.ssl_cafile", str(settings.ssl_cafile), error) from None
        if settings.ssl_certfile is not None:
            try:
                context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, lambda: "")
            except (OSError, ValueError) as error:
                raise unusable("registry.ssl_certfile", settings.ssl_certfile, error) from None
        return context


class GlueRegistry(SchemaRegistry):
    """Asks AWS Glue, with the credentials of this machine or pod."""

    def __init__(self, settings: Registry, expected: str) -> None:
        super().__init__(settings, expected)
        if importlib.util.find_spec("botocore") is None:
            needs = "needs the Python package botocore: install streamer-metrics[aws]"
            raise SettingsError(f"registry = {settings.url!r} {needs}")
        from botocore.config import Config  # type: ignore[import-untyped]
        from botocore.session import get_session  # type: ignore[import-untyped]

        seconds = limits.REGISTRY_SECONDS
        config = Config(connect_timeout=seconds, read_timeout=seconds, retries={"mode": "standard"})
        self._client: Any = get_session().create_client(
            "glue", region_name=self.place, config=config
        )

    def _find(self, number: int) -> _Schema | None:
        if not number >> CONFLUENT_BITS:
            raise SchemaMissingError(
                f"schema {number} is one of Confluent's registry: write its address as registry; "
                f"at {self._settings.url}"
            )
        try:
            found = self._client.get_schema_version(SchemaVersionId=id_text(number))
        except self._client.exceptions.EntityNotFoundException:
            return None
        except Exception as error:  # of botocore: a tree of its own
            hint = _GLUE_HINTS.get(type(error).__name__, "")
            hint = _GLUE_HINTS.get(_code_of(error), hint)
            text = f"cannot ask the schema registry: {error}{hint}; at {self._settings.url}"
            raise RegistryError(text) from error
        return _Schema(found["SchemaDefinition"], schemaType=found["DataFormat"])


def _code_of(error: Exception) -> str:
    """What AWS calls an error that it answers with."""
    answer: dict[str, dict[str, str]] = getattr(error, "response", {})
    return answer.get("Error", {}).get("Code", "")


_GLUE_HINTS = {
    "NoCredentialsError": ": give this process a role",
    "AccessDeniedException": ": allow its role glue:GetSchemaVersion",
}
"""Name of an error → what to do."""
_MOVED = ": its address is another one; correct registry.url, for no redirect is followed"
_DENIED = ": look at its credentials"


def proxy_of(url: str) -> str | None:
    """That of the environment, which tunnels TLS; one for plain HTTP would read the credentials.
    Not by aiohttp, which would also send what a .netrc has."""
    parts = urlsplit(url)
    if parts.scheme != "https" or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get("https")


def _hint(status: int) -> str:
    if 300 <= status < 400:
        return _MOVED
    return _DENIED if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN) else ""


def _reason(error: Exception) -> str:
    """What a person is to read of it."""
    if isinstance(error, TimeoutError):
        return f"no whole answer within {limits.REGISTRY_SECONDS:g} s"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError):
        return os.strerror(cause.errno)
    return str(cause)


def _is_of_registry(text: bytes) -> bool:
    """Whether something was looked for and not found, and not the API itself: then the answer says
    so by a code of five digits."""
    try:
        code = msgspec.json.decode(text).get("error_code", 0)
    except (msgspec.DecodeError, AttributeError):
        return False
    return isinstance(code, int) and code // 100 == http.HTTPStatus.NOT_FOUND


@functools.lru_cache(maxsize=limits.MAX_SOURCES)
def registry_at(settings: Registry, expected: str = "") -> SchemaRegistry:
    """The registry of these settings, one for the whole process."""
    made = GlueRegistry if settings.url.startswith(GLUE) else SchemaRegistry
    return made(settings, expected)


def registry_of(settings: Settings, log: str) -> SchemaRegistry | None:
    """The registry of a log, one for the whole process; None where it needs none."""
    source = settings.read_sources[settings.logs[log].source]
    if source.schemas is None:
        return None
    return registry_at(source.schemas, source.format)


def schemas_of(settings: Settings) -> Callable[[str, int], SchemaText | None]:
    """What gives a log's schema by its id: None where there is none, RegistryError where it cannot
    be got."""

    def schema_of(log: str, schema_id: int) -> SchemaText | None:
        registry = registry_of(settings, log)
        try:
            return None if registry is None else registry.schema(schema_id)
        except SchemaMissingError:
            return None

    return schema_of
