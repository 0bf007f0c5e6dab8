"""Authentication at the exporter: TLS, and basic authentication as Prometheus sends it.

``/healthz`` is open, for it reveals nothing and orchestrators have no password; every other page
asks where ``exporter.username`` is set.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from streamer.errors import SettingsError
from streamer.settings.load import secret_of, unusable
from streamer.settings.model import ExporterSettings

OPEN = frozenset({"/healthz"})
"""Paths that ask for no password."""
_ASK = {"WWW-Authenticate": 'Basic realm="streamer", charset="UTF-8"'}


def is_open(path: str) -> bool:
    """Whether a path answers anyone, under any name."""
    return path in OPEN


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def tls_context(exporter: ExporterSettings) -> ssl.SSLContext | None:
    """For the server, TLS 1.2 or newer; None for plain HTTP.

    SettingsError where a file cannot be used.
    """
    if exporter.tls_certfile is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:  # an encrypted key fails here, instead of asking on the terminal
        context.load_cert_chain(exporter.tls_certfile, exporter.tls_keyfile, lambda: "")
    except (OSError, ValueError) as error:
        paths = ", ".join(p for p in (exporter.tls_certfile, exporter.tls_keyfile) if p is not None)
        raise unusable("exporter.tls_certfile", paths, error) from None
    return context


def guards(
    exporter: ExporterSettings, has_token: Callable[[web.Request], bool] = lambda _: False
) -> list[Any]:
    """Middleware of aiohttp: nothing, or the question who asks. ``has_token``: whether a request is
    one that is answered by a token instead.

    SettingsError where the password cannot be read.
    """
    if exporter.username is None:
        return []
    password = _password(exporter)
    expected = _digest(exporter.username), _digest(password)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if is_open(request.path) or has_token(request) or _is_welcome(request, expected):
            return await handler(request)
        return web.Response(
            status=401, text="this page needs the exporter's user name and password\n", headers=_ASK
        )

    return [guard]


def _is_welcome(request: web.Request, expected: tuple[bytes, bytes]) -> bool:
    """Compares digests, and always both: the time it takes reveals nothing."""
    user, password = _login(request.headers.get("Authorization", ""))
    is_user = hmac.compare_digest(_digest(user), expected[0])
    is_password = hmac.compare_digest(_digest(password), expected[1])
    return is_user & is_password


def _login(header: str) -> tuple[str, str]:
    """User name and password of a header; both empty where it has none.

    >>> _login("Basic bWU6c2VjcmV0"), _login("Bearer bWU6c2VjcmV0"), _login("Basic ü")
    (('me', 'secret'), ('', ''), ('', ''))
    """
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        login = base64.b64decode(coded.strip(), validate=True).decode()
    except (binascii.Error, ValueError):
        return "", ""
    user, _, password = login.partition(":")
    return user, password


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _password(exporter: ExporterSettings) -> str:
    if exporter.password_file is not None:
        return secret_of("exporter.password_file", exporter.password_file)
    if not exporter.password:
        raise SettingsError("there is no password in exporter.password")
    return exporter.password


def is_public(host: str) -> bool:
    """Whether others than this machine can reach an address that is listened on.

    >>> [is_public(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "", "metrics")]
    [False, False, False, True, True, True]
    """
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True
