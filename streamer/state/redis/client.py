"""From ``[redis]`` of the settings to a client, and from its errors to ours.

A password (in the URL, in a file, in the environment) goes to the server and nowhere else.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisClusterException,
    RedisError,
)

from streamer.errors import SettingsError, StoreAccessError, StoreError
from streamer.settings import limits
from streamer.settings.load import secret_of, unusable
from streamer.settings.model import Redis as RedisSettings
from streamer.settings.redis_url import is_sentinel, place_of, sentinels_of

FAILURES = (RedisError, RedisClusterException, OSError, TimeoutError)
"""What a client may raise: the exceptions of a cluster's client are a tree of their own."""
_REFUSALS = (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    ssl.SSLCertVerificationError,
)
_TIMEOUT_SECONDS = 10.0
_REFUSED = ("NOAUTH", "NOPERM", "WRONGPASS", "CERTIFICATE_VERIFY_FAILED")


def client(settings: RedisSettings) -> Any:
    """A client for the settings, without retries of its own: commits are retried here, where a
    lost reply is told from a lost request."""
    options: dict[str, Any] = {
        "socket_timeout": _TIMEOUT_SECONDS,
        "socket_connect_timeout": _TIMEOUT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        **_login(settings),
        **_certificates(settings),
    }
    options = {key: value for key, value in options.items() if value is not None}
    # All partitions of a worker may commit at once: those beyond the bound wait for their turn.
    bound = {"max_connections": limits.REDIS_CONNECTIONS, "timeout": _TIMEOUT_SECONDS}
    try:
        if settings.cluster:
            return RedisCluster.from_url(settings.url, **options)
        if is_sentinel(settings.url):
            return Redis.from_pool(_sentinel_pool(settings.url, {**bound, **options}))
        pool: Any = BlockingConnectionPool.from_url(settings.url, **bound, **options)
        return Redis.from_pool(pool)
    except (ValueError, TypeError, RedisError, RedisClusterException):
        # Without the library's words: they quote parts of the URL, which may be the password's.
        raise SettingsError(
            "redis.url cannot be used: redis://host:port/db, rediss:// for TLS, and /0 with "
            f"redis.cluster; %-encode a password in it; at {place_of(settings.url)}"
        ) from None


class _MasterPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to the master that Sentinel names, asked at each; those beyond the bound wait."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        """Close them, and those to the Sentinels."""
        await super().disconnect(inuse_connections)
        for sentinel in self.sentinel_manager.sentinels:
            await sentinel.aclose()


def _sentinel_pool(url: str, options: dict[str, Any]) -> Any:
    found = sentinels_of(url)
    own = {key: options[key] for key in ("socket_timeout", "socket_connect_timeout")}
    asked = {**own, "username": found.username, "password": found.password}
    if found.is_tls:
        options["ssl"] = asked["ssl"] = True
        asked |= {key: value for key, value in options.items() if key.startswith("ssl_")}
    manager = Sentinel(found.addresses, sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
    pool: Any = _MasterPool
    return pool(found.master, manager, db=found.database, **options)


class _PasswordFile(CredentialProvider):
    """The password of a file, which is read again for each connection: tokens are renewed."""

    def __init__(self, username: str | None, path: str) -> None:
        self._username, self._path = username, path
        self.get_credentials()

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """User and password, or the password alone."""
        password = secret_of("redis.password_file", self._path)
        return (password,) if self._username is None else (self._username, password)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """The same; redis-py's own warns for each connection."""
        return self.get_credentials()


def _login(settings: RedisSettings) -> dict[str, Any]:
    path = settings.password_file
    is_set = path is not None or settings.password is not None
    if is_set and not is_sentinel(settings.url) and _has_password(settings.url):
        raise SettingsError("redis.url holds a password, and another one is set: use one")
    if path is None:
        return {"username": settings.username, "password": settings.password}
    return {"credential_provider": _PasswordFile(settings.username, path)}


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.password)
    except ValueError:  # said when the client is made of it
        return False


def _certificates(settings: RedisSettings) -> dict[str, Any]:
    """Options of TLS; SettingsError where a file cannot be used, which the library would only say
    at the first connection, without its name."""
    keys = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
    given = {key: getattr(settings, key) for key in keys if getattr(settings, key) is not None}
    if not given:
        return {}
    if not settings.url.startswith(("rediss://", "rediss+sentinel://")):
        raise SettingsError(f"redis.{min(given)} is set, but redis.url is not rediss://")
    if settings.ssl_keyfile is not None and settings.ssl_certfile is None:
        raise SettingsError("redis.ssl_keyfile is set without redis.ssl_certfile")
    key = "ssl_ca_certs"
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_certs)
        if settings.ssl_certfile is not None:
            key = "ssl_certfile"
            context.load_cert_chain(settings.ssl_certfile, settings.ssl_keyfile, lambda: "")
    except (OSError, ValueError) as error:
        raise unusable(f"redis.{key}", given[key], error) from None
    return given


@contextmanager
def failures(doing: str, settings: RedisSettings) -> Iterator[None]:
    """StoreError for what the client raises; StoreAccessError where waiting would not help."""
    try:
        yield
    except FAILURES as error:
        text = f"{doing}: {refusal(error)}; at {place_of(settings.url)}"
        kind = StoreAccessError if is_refused(error) else StoreError
        raise kind(text) from error


def is_refused(error: BaseException) -> bool:
    """Whether authentication, permissions or TLS fail, which no retry cures."""
    if isinstance(error, _REFUSALS) or any(word in str(error) for word in _REFUSED):
        return True
    cause = error.__cause__
    return cause is not None and is_refused(cause)


def refusal(error: BaseException) -> str:
    """An error of the client in one line, with what to look at.

    >>> refusal(AuthenticationError("invalid username-password pair or user is disabled."))
    'invalid username-password pair or user is disabled: look at redis.username and its password'
    """
    text = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in text:
        text += ": look at redis.ssl_ca_certs and the host name"
    elif isinstance(error, NoPermissionError):
        text += ": give the user of redis.username the rights listed in docs/how-to/secure-it.md"
    elif is_refused(error):
        text += ": look at redis.username and its password"
    elif "not enabled on this node" in text or "cluster support disabled" in text:
        text += ": set redis.cluster = false"
    elif "[SSL" in text:
        text += ": look at redis:// or rediss:// in redis.url, and redis.ssl_certfile"
    return text
