"""``redis.url``: what it may be, and its address without what is secret."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from streamer.errors import SettingsError

_FORM = "redis://host:port/db, rediss:// for TLS, redis+sentinel://host:port,host:port/master/db"
_SENTINEL_PORT = 26379
_SETTINGS_OF_OPTIONS = {
    "username": "redis.username",
    "password": "redis.password_file",
    "db": "/N at the end of redis.url",
    "ssl_ca_certs": "redis.ssl_ca_certs",
    "ssl_certfile": "redis.ssl_certfile",
    "ssl_keyfile": "redis.ssl_keyfile",
}
"""Options that clients know in a URL → what is set here instead."""


class Sentinels(NamedTuple):
    """What a URL says of Sentinel; ``username`` and ``password``: theirs, not those of Redis."""

    addresses: list[tuple[str, int]]
    master: str
    database: int
    username: str | None
    password: str | None
    is_tls: bool


def is_sentinel(url: str) -> bool:
    """Whether a URL names Sentinels, which know where the master is."""
    return url.startswith(("redis+sentinel://", "rediss+sentinel://"))


def sentinels_of(url: str) -> Sentinels:
    """The parts of such a URL; ValueError where it has none.

    >>> sentinels_of("redis+sentinel://:s@a:1,b/main/2")[:5]
    ([('a', 1), ('b', 26379)], 'main', 2, None, 's')
    """
    scheme, _, rest = url.partition("://")
    place, _, path = rest.rpartition("@")[2].partition("/")
    login = rest.rpartition("@")[0]
    master, _, database = path.rstrip("/").partition("/")
    parts = [urlsplit(f"//{each}") for each in place.split(",")]
    if not master or not all(part.hostname for part in parts):
        raise ValueError
    user, _, password = login.partition(":")
    return Sentinels(
        [(part.hostname or "", part.port or _SENTINEL_PORT) for part in parts],
        *(unquote(master), int(database or 0), unquote(user) or None, unquote(password) or None),
        scheme.startswith("rediss"),
    )


def place_of(url: str) -> str:
    """The address in a URL, without user, password and options.

    >>> place_of("rediss://me:secret@redis.example:6380/0?password=secret")
    'redis.example:6380/0'
    """
    return url.rpartition("://")[2].rpartition("@")[2].partition("?")[0]


def validate_url(url: str) -> None:
    """SettingsError where a URL is none of a Redis, or has options. No message quotes more of it
    than its address: a password may hold any character."""
    at = f"at {place_of(url)}" if "://" in url else "it has no ://"
    try:
        if is_sentinel(url) and "?" not in url and "#" not in url:
            sentinels_of(url)
            return
        parts = urlsplit(url)
        is_sound = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_sound, parts = False, urlsplit("")
    if "?" in url:
        raise SettingsError(f"redis.url has a question mark: {_instead(parts.query)}; {at}")
    database = parts.path.removeprefix("/").rstrip("/")
    if parts.scheme == "unix" and parts.path:
        return
    if parts.scheme not in ("redis", "rediss") or not is_sound or "#" in url:
        raise SettingsError(f"redis.url cannot be used: {_FORM}; %-encode a password in it; {at}")
    if database and not (database.isascii() and database.isdigit()):
        raise SettingsError(
            f"redis.url cannot be used: only / and a database number follow the port; {at}"
        )


def _instead(query: str) -> str:
    """What to do with the options of a URL: only names that are known are quoted."""
    names = dict.fromkeys(part.partition("=")[0] for part in query.split("&"))
    options = [name for name in names if name in _SETTINGS_OF_OPTIONS]
    if options:
        use = "; ".join(f"{name}: {_SETTINGS_OF_OPTIONS[name]}" for name in options)
        return f"options are settings of their own here ({use})"
    return (
        "it takes no options; user, password and TLS are settings of their own in the section "
        "[redis], and a question mark in a password is written %3F"
    )
