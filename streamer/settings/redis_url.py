"""``redis.url``: what it may be, and its address without what is secret."""

from __future__ import annotations

from urllib.parse import urlsplit

from streamer.errors import SettingsError

_FORM = "redis://host:port/db, or rediss:// for TLS"
_SETTINGS_OF_OPTIONS = {
    "username": "redis.username",
    "password": "redis.password_file",
    "db": "/N at the end of redis.url",
    "ssl_ca_certs": "redis.ssl_ca_certs",
    "ssl_certfile": "redis.ssl_certfile",
    "ssl_keyfile": "redis.ssl_keyfile",
}
"""Options that clients know in a URL → what is set here instead."""


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
