"""``/runbooks``: what to do about each alert, to which the rules of ``streamer rules`` link.

The page is made of ``docs/operations.md`` by ``python -m tests.docs.reference``.
"""

from __future__ import annotations

import functools
import re
from importlib.resources import files

from aiohttp import web

from streamer.server.web import source_of

PATH = "/runbooks"
NAME = "runbooks.html"
_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def add_runbooks(app: web.Application) -> None:
    """Serve the page, with a policy that allows nothing but its own style."""
    app.router.add_get(PATH, _serve)


async def _serve(request: web.Request) -> web.Response:
    text, headers = _page()
    return web.Response(text=text, content_type="text/html", charset="utf-8", headers=headers)


@functools.cache
def _page() -> tuple[str, dict[str, str]]:
    """The text and the headers of the answer."""
    text = files("streamer.server").joinpath(NAME).read_text(encoding="utf-8")
    styles = " ".join(map(source_of, _STYLE.findall(text)))
    parts = ("default-src 'none'", f"style-src {styles}", "base-uri 'none'", "form-action 'none'")
    policy = "; ".join((*parts, "frame-ancestors 'none'"))
    return text, {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}
