"""The names that the exporter answers to.

A page of another site can make its own name lead to this machine (DNS rebinding), and would then
read what the exporter shows, with the reader's browser. Such a request names that site in its
header ``Host``. Addresses need no list: no DNS stands between them and us.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http import HttpVersion11

from streamer.settings import limits
from streamer.settings.model import ExporterSettings

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def known_hosts(exporter: ExporterSettings) -> frozenset[str]:
    """Names, in lower case: ``localhost``, that of the settings, this machine's, ``hosts``."""
    own = socket.gethostname()
    names = ("localhost", exporter.host, own, own.partition(".")[0], *exporter.hosts)
    return frozenset(name.lower().rstrip(".") for name in names if name)


def is_known(header: str, names: frozenset[str]) -> bool:
    """Whether a header ``Host`` is an address or one of ``names``, with or without a port.

    >>> names = frozenset({"localhost", "exporter"})
    >>> [is_known(h, names) for h in ("exporter:8000", "LOCALHOST", "10.0.0.7:8000", "[::1]:80")]
    [True, True, True, True]
    >>> [is_known(h, names) for h in ("evil.example:8000", "exporter.evil.example", "", "[::1")]
    [False, False, False, False]
    """
    if header.startswith("["):
        host, closing, _ = header[1:].partition("]")
        return bool(closing) and _is_address(host)
    host = header.partition(":")[0].lower().rstrip(".")
    return host in names or host.endswith(".localhost") or _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def host_guard(exporter: ExporterSettings, is_open: Callable[[str], bool]) -> Any:
    """Middleware of aiohttp: 421 for a name that is not known, but on pages that reveal nothing."""
    names = known_hosts(exporter)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        header = request.headers.get("Host")
        is_old = header is None and request.version < HttpVersion11
        if is_old or is_open(request.path) or is_known(header or "", names):
            return await handler(request)
        shown = (header or "")[: limits.MAX_FOUND_CHARS]
        refusal = (
            f"{shown!r} is not a name of this exporter: use its address, or add the name "
            "to exporter.hosts of its settings\n"
        )
        return web.Response(status=421, text=refusal)

    return guard
