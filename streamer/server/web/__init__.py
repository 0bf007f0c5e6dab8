"""The web page of the exporter: files of this folder, served with a strict policy.

The page loads nothing from other hosts and sets all text as text: what events carry is data. Its
modules ask the JSON API of the same exporter.
"""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
from collections.abc import Awaitable, Callable
from importlib.resources import files

from aiohttp import ETag, web

from streamer.server.scrape import accepts_gzip

TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
"""Kinds of files that are served, by suffix."""
TEMPLATE = "scorecard.html"
"""The file that is no page by itself."""
_BEGIN = ("main.js", "scorecard.js")
"""What pages begin with; the other modules are loaded ahead."""
_MODULES = b"<!-- modules -->\n"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)
"""Content-Security-Policy of every file: the browser itself refuses markup made of text."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept-Encoding",
    "Cache-Control": "no-cache",  # asked for again each time; 304 where it is the same
}


def source_of(style: str) -> str:
    """A style sheet within a page, as a policy names it: by its hash."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"'sha256-{digest}'"


Handler = Callable[[web.Request], Awaitable[web.Response]]


def add_pages(app: web.Application) -> None:
    """Serve the page at ``/`` and its files below ``/web/``.

    The files are read once: no path of a request ever leads to the disk.
    """
    for name, body in contents().items():
        if name == TEMPLATE:
            continue
        path = "/" if name == "index.html" else f"/web/{name}"
        app.router.add_get(path, _handler(body, TYPES[_suffix(name)]))


@functools.cache
def contents() -> dict[str, bytes]:
    """Name → bytes of every file of the page."""
    folder = files(__name__)
    found = {
        each.name: each.read_bytes()
        for each in sorted(folder.iterdir(), key=lambda each: each.name)
        if _suffix(each.name) in TYPES
    }
    names = [name for name in found if name.endswith(".js") and name not in _BEGIN]
    links = "".join(f'<link rel="modulepreload" href="web/{name}">\n' for name in names)
    return found | {"index.html": found["index.html"].replace(_MODULES, links.encode())}


def _suffix(name: str) -> str:
    """The last part of a name, with its dot.

    >>> _suffix("style.css"), _suffix("style")
    ('.css', '')
    """
    _, dot, last = name.rpartition(".")
    return dot + last if dot else ""


def _handler(body: bytes, content_type: str) -> Handler:
    tag, packed = hashlib.sha256(body).hexdigest()[:32], gzip.compress(body, mtime=0)

    async def serve(request: web.Request) -> web.Response:
        etags = request.if_none_match or ()
        if any(each.value in (tag, "*") for each in etags):
            answer = web.Response(status=304, headers=HEADERS)
        else:
            is_gzip = accepts_gzip(request)
            headers = HEADERS | ({"Content-Encoding": "gzip"} if is_gzip else {})
            answer = web.Response(
                body=packed if is_gzip else body,
                content_type=content_type,
                charset="utf-8",
                headers=headers,
            )
        answer.etag = ETag(tag)
        return answer

    return serve
